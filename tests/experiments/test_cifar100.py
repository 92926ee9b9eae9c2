"""The sheets of CIFAR-100."""

import json

import numpy as np
import pytest

from conftest import DATA
from unaligned.errors import FileError
from unaligned.experiments.cifar100 import CIFAR100

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one class, whose tile i is of colour i."""
    monkeypatch.setenv("UNALIGNED_DATA", str(tmp_path))
    place = tmp_path / "cifar100"
    place.mkdir()
    record = {"name": "apple", "superclass": "fruit", "cifar_fs": "train", "fc100": "test"}
    (place / "classes.json").write_text(json.dumps([record]))
    numbers = np.arange(600).reshape(30, 20)
    pixels = np.stack([numbers // 256, numbers % 256, numbers * 0], axis=-1).astype(np.uint8)
    sheet = np.kron(pixels, np.ones((32, 32, 1), dtype=np.uint8))
    Image.fromarray(sheet).save(place / "apple.webp", lossless=True, exact=True)
    return place


def test_tiles_are_read_row_by_row(folder):
    images = CIFAR100.open().load(["apple"])["apple"]
    assert images.shape == (600, 32, 32, 3)
    assert images.dtype == np.uint8
    numbers = 256 * images[:, 0, 0, 0].astype(int) + images[:, 31, 31, 1]
    np.testing.assert_array_equal(numbers, np.arange(600))


def test_classes_are_those_of_the_split(folder):
    data = CIFAR100.open()
    assert data.classes("fc100", "test") == data.classes("cifar_fs", "train") == ["apple"]
    assert data.classes("fc100", "train") == []


@pytest.mark.parametrize("text", ["", "[1]", "null", '[{"name": "apple"}]'])
def test_damaged_list_of_classes_raises(folder, text):
    (folder / "classes.json").write_text(text)
    with pytest.raises(FileError, match=r"CIFAR-100 is not in .*classes.json is damaged.*Put"):
        CIFAR100.open()


def test_missing_sheet_raises_with_what_to_put_where(folder):
    (folder / "apple.webp").unlink()
    with pytest.raises(FileError, match=r"CIFAR-100 is not in .*no apple.webp.*Put a sheet"):
        CIFAR100.open().load(["apple"])


@pytest.mark.parametrize("content", [b"", b"RIFF", "truncated", "small"])
def test_damaged_sheet_raises_with_its_name(folder, content):
    path = folder / "apple.webp"
    if content == "truncated":
        path.write_bytes(path.read_bytes()[:300])
    elif content == "small":
        Image.new("RGB", (32, 32)).save(path)
    else:
        path.write_bytes(content)
    with pytest.raises(FileError, match=r"Cannot read .*apple.webp"):
        CIFAR100.open().load(["apple"])


@pytest.mark.skipif(not (DATA / "cifar100").is_dir(), reason=f"CIFAR-100 is not in {DATA}")
def test_real_splits_have_their_sizes(monkeypatch):
    monkeypatch.setenv("UNALIGNED_DATA", str(DATA))
    data = CIFAR100.open()
    for name, sizes in {"fc100": (60, 20, 20), "cifar_fs": (64, 16, 20)}.items():
        assert tuple(len(data.classes(name, p)) for p in ("train", "val", "test")) == sizes
    images = data.load(["apple"])["apple"]
    # Tiles were cut along their borders: neighbours of one image are alike.
    steps = np.abs(np.diff(images.astype(float), axis=1)).mean()
    assert steps < 15
