"""Folders: images as rows, and files as datasets."""

import numpy as np
import pytest

import sample_files as samples
import unaligned as ua
from sample_files import POINTS
from unaligned.errors import DataWarning, FileError

image = pytest.importorskip("PIL.Image")


def pictures(folder, *arrays, suffix="png"):
    folder.mkdir(parents=True)
    for i, pixels in enumerate(arrays):
        image.fromarray(np.asarray(pixels)).save(folder / f"{i}.{suffix}")
    return folder


GREY = [np.full((2, 3), i, dtype=np.uint8) for i in range(12)]
COLOUR = [np.full((2, 3, 3), i, dtype=np.uint8) for i in range(3)]


def test_images_are_rows_in_natural_order(tmp_path):
    dataset = ua.load(pictures(tmp_path / "digits", *GREY))
    assert dataset.name == "digits"
    assert dataset.values.shape == (12, 6)
    assert dataset.values[:, 0].tolist() == list(range(12)), "10.png comes after 9.png"


def test_one_colour_image_makes_all_colour(tmp_path):
    dataset = ua.load(pictures(tmp_path / "mixed", *COLOUR, GREY[7]))
    assert dataset.values.shape == (4, 18)
    assert set(dataset.values[3]) == {7}


def test_16_bit_images_keep_their_depth(tmp_path):
    deep = [np.full((2, 3), 40_000 + i, dtype=np.uint16) for i in range(3)]
    dataset = ua.load(pictures(tmp_path / "deep", *deep))
    assert dataset.values[:, 0].tolist() == [40_000, 40_001, 40_002]
    with pytest.raises(FileError, match=r"mixes 16-bit and colour images"):
        ua.load(pictures(tmp_path / "both", deep[0], *COLOUR))


def test_images_of_several_sizes_need_resize(tmp_path):
    folder = pictures(tmp_path / "sizes", GREY[3], np.zeros((5, 5), dtype=np.uint8))
    with pytest.raises(FileError, match=r"2 different sizes: 3 × 2 \('0.png'\), 5 × 5"):
        ua.load(folder)
    assert ua.load(folder, resize=(4, 2)).values.shape == (2, 8)
    assert ua.load(folder, resize=4).values.shape == (2, 16)


def test_folder_of_image_folders_gives_one_dataset_each(tmp_path):
    for name, pixels in (("cats", GREY[:4]), ("dogs", GREY[4:9])):
        pictures(tmp_path / name, *pixels)
    found = ua.load_all(tmp_path)
    assert {name: dataset.n_samples for name, dataset in found.items()} == {"cats": 4, "dogs": 5}


def test_folder_of_files_gives_one_dataset_per_file(tmp_path):
    np.save(tmp_path / "day10.npy", POINTS)
    np.save(tmp_path / "day9.npy", POINTS[:5])
    np.savez(tmp_path / "many.npz", a=POINTS, b=POINTS)
    (tmp_path / ".hidden").write_text("skipped silently")
    assert list(ua.load_all(tmp_path)) == ["day9", "day10", "many:a", "many:b"]


def test_files_that_differ_only_in_suffix_keep_it(tmp_path):
    np.save(tmp_path / "a.npy", POINTS)
    (tmp_path / "a.csv").write_bytes(samples.csv())
    assert list(ua.load_all(tmp_path)) == ["a.csv", "a.npy"]


def test_skipped_files_warn(tmp_path):
    np.save(tmp_path / "a.npy", POINTS)
    (tmp_path / "README.md").write_text("about")
    with pytest.warns(DataWarning, match=r"skipped 1 entry of unknown format.*'README.md'"):
        assert list(ua.load_all(tmp_path)) == ["a"]


def test_folder_without_supported_files_raises(tmp_path):
    (tmp_path / "README.md").write_text("about")
    with pytest.raises(FileError, match=r"no file of a supported format. Supported: .npy,"):
        ua.load_all(tmp_path)
    with pytest.raises(FileError, match=r"no images.*load_all"):
        ua.load(tmp_path)


def test_damaged_file_in_folder_is_named(tmp_path):
    np.save(tmp_path / "a.npy", POINTS)
    (tmp_path / "b.npy").write_bytes(b"broken")
    with pytest.raises(FileError, match=r"b\.npy"):
        ua.load_all(tmp_path)
