"""Files to datasets: every format gives the same values, names, groups and fingerprints."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

import sample_files as samples
import unaligned as ua
from conftest import DATA
from sample_files import DAYS, LABELLED, POINTS, VALID
from unaligned.errors import DataWarning, FileError, InputError, InputTypeError, MissingExtraError
from unaligned.io.registry import locate

SINGLE = ("points.ply", "points.stl")  # formats whose sample has single precision


def write(folder, name, data):
    (folder / name).write_bytes(data)
    return folder / name


def expected(name):
    if name == "points.h5ad":
        return np.where(POINTS > 0, POINTS, 0.0)
    return POINTS


@pytest.mark.parametrize("name", VALID)
def test_every_format_gives_the_same_points(name, tmp_path):
    dataset = ua.load(write(tmp_path, name, VALID[name]()))
    assert dataset.name == "points"
    assert dataset.metadata["path"] == str(tmp_path / name)
    tolerance = 1e-6 if name in SINGLE else 0
    values = dataset.prepared()
    values = values.toarray() if hasattr(values, "toarray") else values
    np.testing.assert_allclose(values, expected(name), rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", [n for n in VALID if n not in (*SINGLE, "points.h5ad")])
def test_fingerprint_does_not_depend_on_format(name, tmp_path):
    dataset = ua.load(write(tmp_path, name, VALID[name]()))
    sparse = hasattr(dataset.values, "tocsr")
    assert sparse == (".mtx" in name)
    values = dataset.values.toarray() if sparse else dataset.values
    assert ua.Dataset(values).fingerprint == ua.Dataset(POINTS).fingerprint


VARIANTS = {
    "text.ply": lambda: samples.ply(binary=False),
    "big.ply": lambda: samples.ply(order="big"),
    "binary.off": lambda: samples.off(binary=True),
    "joined.off": lambda: samples.off().replace(b"OFF\n# made here\n", b"OFF"),
    "text.stl": lambda: samples.stl(binary=False),
    "dense.mtx": lambda: samples.mtx(sparse=False),
    "dense.h5ad": lambda: samples.h5ad(sparse=False),
    "fortran.npy": lambda: samples.npy(np.asfortranarray(POINTS)),
    "legacy.pt": lambda: samples.torch_file(_use_new_zipfile_serialization=False),
    "alone.pt": lambda: samples.torch_file(lambda torch: torch.tensor(POINTS)),
    "UPPER.NPY": lambda: samples.npy(POINTS),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_a_format_give_the_same_points(name, tmp_path):
    dataset = ua.load(write(tmp_path, name, VARIANTS[name]()))
    np.testing.assert_allclose(dataset.prepared(), POINTS, rtol=1e-6)


def test_shared_corners_of_triangles_are_read_once(tmp_path):
    dataset = ua.load(write(tmp_path, "a.stl", samples.stl()))
    assert dataset.n_samples == len(POINTS), "five triangles, the fifth being the first again"


LAZY = ("points.npy", "points.parquet", "points.h5", "points.safetensors", "points.h5ad")


@pytest.mark.parametrize("name", LAZY)
def test_lazy_rows_are_read_by_blocks_and_can_be_pickled(name, tmp_path):
    path = write(tmp_path, name, VALID[name]())
    lazy = pickle.loads(pickle.dumps(ua.load(path, lazy=True)))
    assert lazy.is_lazy
    assert not ua.load(path).is_lazy
    np.testing.assert_array_equal(lazy.prepared(), expected(name))
    np.testing.assert_array_equal(next(lazy.blocks(5)), expected(name)[:5])


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_is_read_into_memory_or_by_blocks(version, tmp_path):
    samples.zarr_folder(tmp_path / "points.zarr", version)
    for lazy in (False, True):
        dataset = ua.load(tmp_path / "points.zarr:x", lazy=lazy)
        assert dataset.is_lazy == lazy
        assert dataset.fingerprint == ua.Dataset(POINTS).fingerprint


def test_large_files_are_lazy_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr("unaligned.defaults.LAZY_BYTES", 200)
    for name in LAZY:
        path = write(tmp_path, name, VALID[name]())
        assert ua.load(path).is_lazy
        assert not ua.load(path, lazy=False).is_lazy


def test_removed_lazy_file_is_named(tmp_path):
    path = write(tmp_path, "points.h5", VALID["points.h5"]())
    dataset = ua.load(path, lazy=True)
    path.unlink()
    with pytest.raises(FileError, match=r"points\.h5"):
        dataset.prepared()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("all.npz", lambda: samples.npz(a=POINTS, b=POINTS[:5], day=DAYS)),
        ("all.h5", lambda: samples.hdf5(a=POINTS, b=POINTS[:5], day=DAYS.astype(bytes))),
        ("all.safetensors", lambda: samples.safetensors(a=POINTS, b=POINTS[:5])),
        (
            "all.pt",
            lambda: samples.torch_file(
                lambda torch: {"a": torch.tensor(POINTS), "b": torch.tensor(POINTS[:5])}
            ),
        ),
    ],
)
def test_part_is_named_after_colon(name, data, tmp_path):
    path = write(tmp_path, name, data())
    assert ua.load(f"{path}:b").n_samples == 5
    assert ua.load(f"{path}:b").name == "all:b"
    assert list(ua.load_all(path)) == ["all:a", "all:b"]
    assert list(ua.load_all(f"{path}:b")) == ["all:b"]
    with pytest.raises(FileError, match=r"several arrays.*'a' \(12 × 3 .*'b' \(5 × 3 "):
        ua.load(path)
    with pytest.raises(FileError, match=r"no 'c' in the file.*'a' \(12 × 3"):
        ua.load(f"{path}:c")


def test_nested_keys_have_slashes(tmp_path):
    path = write(
        tmp_path,
        "model.pt",
        samples.torch_file(lambda torch: {"state_dict": {"fc.weight": torch.eye(3)}, "epoch": 1}),
    )
    assert ua.load(f"{path}:state_dict/fc.weight").n_samples == 3
    path = write(tmp_path, "tree.h5", samples.hdf5(group__x=POINTS, y=POINTS))
    assert ua.load(f"{path}:group/x").name == "tree:group/x"
    assert ua.load(f"{path}:/group/x").n_samples == 12


def test_existing_path_with_colon_is_taken_whole(tmp_path):
    write(tmp_path, "a.npz", samples.npz(b=POINTS[:4], c=POINTS))
    write(tmp_path, "odd:name.npz", samples.npz(b=POINTS[:6], c=POINTS))
    whole = write(tmp_path, "a.npz:b", b"not read")
    with pytest.raises(FileError, match=r"suffix '\.npz:b'"):
        ua.load(whole)
    whole.unlink()
    assert ua.load(whole).n_samples == 4
    assert ua.load(tmp_path / "odd:name.npz:b").n_samples == 6


@pytest.mark.parametrize(
    ("text", "file", "key"),
    [
        ("C:\\data\\cells.npz:counts", "C:\\data\\cells.npz", "counts"),
        ("C:\\data\\cells.npy", "C:\\data\\cells.npy", None),
        ("cells.npz:a:b", "cells.npz", "a:b"),
    ],
)
def test_colons_of_drives_and_keys_are_kept(text, file, key):
    place = locate(text)
    assert (str(place.path), place.key) == (file, key)


def test_arrays_of_more_dimensions_need_flatten(tmp_path):
    path = write(tmp_path, "images.npy", samples.npy(np.zeros((6, 4, 4))))
    with pytest.raises(InputError, match=r"images\.npy.*6 × 4 × 4.*flatten=True"):
        ua.load(path)
    assert ua.load(path, flatten=True).values.shape == (6, 16)


def test_matrix_beside_larger_array_must_be_named(tmp_path):
    path = write(tmp_path, "net.npz", samples.npz(fc=POINTS, conv=np.zeros((2, 2, 2)), bias=[1.0]))
    with pytest.raises(FileError, match=r"several arrays"):
        ua.load(path)
    assert list(ua.load_all(path)) == ["net"]


@pytest.mark.parametrize("name", LABELLED)
def test_rows_are_grouped_by_labels_in_natural_order(name, tmp_path):
    found = ua.load_all(write(tmp_path, name, LABELLED[name]()), group_by="day")
    assert list(found) == ["t:D0", "t:D2", "t:D10"]
    for group, dataset in found.items():
        np.testing.assert_array_equal(dataset.prepared(), POINTS[group[2:] == DAYS])
        assert dataset.name == group


@pytest.mark.parametrize("name", ["t.parquet", "t.h5ad"])
def test_groups_of_lazy_rows_are_lazy(name, tmp_path):
    path = write(tmp_path, name, LABELLED[name]())
    found = ua.load_all(path, group_by="day", lazy=True)["t:D10"]
    assert found.is_lazy
    np.testing.assert_array_equal(found.prepared(), POINTS[DAYS == "D10"])


@pytest.mark.parametrize("name", LABELLED)
def test_unknown_label_raises_and_lists_the_labels(name, tmp_path):
    path = write(tmp_path, name, LABELLED[name]())
    with pytest.raises(InputError, match=rf"{name}.*'dya'.*'day'"):
        ua.load_all(path, group_by="dya")


def test_unusable_labels_raise(tmp_path):
    path = write(tmp_path, "a.npz", samples.npz(x=POINTS, id=np.arange(12), two=np.arange(5)))
    with pytest.raises(FileError, match=r"12 different values in 12 rows"):
        ua.load_all(path, group_by="id")
    path = write(tmp_path, "b.npz", samples.npz(x=POINTS, two=np.zeros(5)))
    with pytest.raises(FileError, match=r"has 5 labels, and no array has as many rows"):
        ua.load_all(path, group_by="two")
    with pytest.raises(InputError, match=r"or load_all\(\) with group_by"):
        ua.load(path, group_by="two")
    with pytest.raises(InputError, match=r"cannot be combined with transpose=True"):
        ua.load_all(path, group_by="two", transpose=True)


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (np.array([0, 2, 7]), [0, 2, 7]),
        (np.array([0.5, 2.0, 7.0]), [0.5, 2, 7]),
        (np.array(["0", "2", "7"]), [0, 2, 7]),
        (np.array(["D0", "D2", "D10"]), ["D0", "D2", "D10"]),
        (np.array(["1_0", "1_1", "2_0"]), ["1_0", "1_1", "2_0"]),
        (np.array([False, True, True]), ["False", "True"]),
    ],
)
def test_group_is_metadata_of_its_dataset(tmp_path, labels, values):
    path = tmp_path / "t.npz"
    np.savez(path, x=np.arange(18.0).reshape(9, 2), day=np.repeat(labels, 3))
    found = ua.load_all(path, group_by="day", metadata={"site": "A"}).values()
    assert [dataset.metadata["day"] for dataset in found] == values
    assert {dataset.metadata["site"] for dataset in found} == {"A"}
    assert {dataset.metadata["path"] for dataset in found} == {str(path)}


def test_column_named_path_wins_over_the_origin(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, x=np.arange(8.0).reshape(4, 2), path=np.repeat(["a", "b"], 2))
    found = ua.load_all(path, group_by="path").values()
    assert [dataset.metadata["path"] for dataset in found] == ["a", "b"]


def test_rows_without_label_are_dropped_with_warning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("day,x\n1,1.5\n,9\n1,2.5\n2,3.5\n2,4.5\n")
    with pytest.warns(DataWarning, match=r"'day': 1 of 5 rows have no value"):
        found = ua.load_all(path, group_by="day")
    assert {name: dataset.n_samples for name, dataset in found.items()} == {"a:1": 2, "a:2": 2}


def test_transpose_takes_columns_as_samples(tmp_path):
    for name in ("points.npy", "points.mtx", "points.csv"):
        assert ua.load(write(tmp_path, name, VALID[name]()), transpose=True).n_samples == 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("points.npy", {"columns": ["x"]}),
        ("points.npz", {"lazy": True}),
        ("points.csv", {"flatten": True}),
        ("points.obj", {"resize": (3, 3)}),
    ],
)
def test_option_of_another_format_raises(name, options, tmp_path):
    path = write(tmp_path, name, VALID[name]())
    with pytest.raises(InputError, match=rf"has no option '{next(iter(options))}'"):
        ua.load(path, **options)


def test_unknown_option_raises_and_names_the_nearest(tmp_path):
    with pytest.raises(InputError, match=r"no option 'colums'. Did you mean 'columns'"):
        ua.load(tmp_path / "a.csv", colums=["x"])
    with pytest.raises(InputTypeError, match=r"path=3 must be a path: a string or a pathlib.Path"):
        ua.load(3)


def test_dataset_options_are_passed_on(tmp_path):
    path = write(tmp_path, "d.npy", samples.npy(np.array([[0.0, 1.0], [1.0, np.nan], [2, 3]])))
    with pytest.warns(DataWarning, match=r"dropped 1 of 3"):
        dataset = ua.load(path, name="mine", nan_policy="omit", metadata={"tag": 1})
    assert (dataset.name, dataset.n_samples, dataset.metadata["tag"]) == ("mine", 2, 1)
    path = write(tmp_path, "m.npy", samples.npy(np.array([[0.0, 2.0], [2.0, 0.0]])))
    assert ua.load(path, kind="distances").kind == "distances"


def test_exceeding_max_bytes_raises(tmp_path):
    for name in ("points.npy", "points.npz", "points.csv", "points.h5", "points.pt"):
        path = write(tmp_path, name, VALID[name]())
        with pytest.raises(FileError, match=rf"{name}.* of memory, more than max_bytes=50"):
            ua.load(path, max_bytes=50)
        assert ua.load(path, max_bytes=10_000).n_samples == 12


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("h5py", "a.h5", "formats"),
        ("pyarrow.parquet", "a.parquet", "formats"),
        ("safetensors", "a.safetensors", "formats"),
        ("torch", "a.pt", "torch"),
    ],
)
def test_missing_package_is_named_with_its_extra(package, name, extra, tmp_path, monkeypatch):
    path = write(tmp_path, name, b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"unaligned\[{extra}\]"):
        ua.load(path)


def test_paths_are_accepted_as_data(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    clouds = {name: rng.normal(size=(60, 3)) for name in ("a", "b")}
    for name, values in clouds.items():
        np.save(tmp_path / f"{name}.npy", values)
    monkeypatch.chdir(tmp_path)
    options = {"n_eigenvalues": 10}
    signature = ua.signature("a.npy", **options)
    np.testing.assert_array_equal(signature.values, ua.signature(clouds["a"], **options).values)
    expected = ua.compare(clouds, **options)
    listed = ua.compare(["a.npy", tmp_path / "b.npy"], **options)
    named = ua.compare({"a": "a.npy", "b": clouds["b"]}, **options)
    for result in (listed, named):
        assert result.names == ("a", "b")
        np.testing.assert_array_equal(result.distances, expected.distances)
    assert ua.distance("a.npy", "b.npy", **options) == expected.distances[0, 1]
    with pytest.raises(InputTypeError, match=r"load_all\(path\)"):
        ua.compare("a.npy")


def test_files_of_the_same_name_keep_their_folders(tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / folder / "cells.npy" for folder in ("early", "late")]
    for path in paths:
        path.parent.mkdir()
        np.save(path, rng.normal(size=(50, 2)))
    assert ua.compare(paths, n_eigenvalues=5).names == tuple(map(str, paths))


@pytest.mark.parametrize(
    ("file", "count"),
    [("gas_sensor_drift", 8), ("cytotree_hesc_timecourse", 6), ("snareseq_two_modalities", 2)],
)
def test_real_archives_give_one_dataset_per_matrix(file, count):
    path = DATA / f"{file}.npz"
    if not path.exists():
        pytest.skip(f"real data is not in {DATA}; set UNALIGNED_DATA")
    found = ua.load_all(path)
    assert len(found) == count
    with np.load(path) as stored:
        for name, dataset in found.items():
            np.testing.assert_array_equal(dataset.values, stored[name.partition(":")[2]])


def test_real_cells_are_grouped_by_day():
    path = DATA / "klein2015_mesc.npz"
    if not path.exists():
        pytest.skip(f"real data is not in {DATA}; set UNALIGNED_DATA")
    found = ua.load_all(path, group_by="day")
    assert list(found) == [f"klein2015_mesc:{day}" for day in (0, 2, 4, 7)]
    assert sum(dataset.n_samples for dataset in found.values()) == 1000


@pytest.mark.parametrize("file", ["resnet20-12fca82f.th", "resnet32-d509ac18.th"])
def test_real_weights_are_read_without_unpickling(file):
    pytest.importorskip("torch")
    path = DATA / "resnet_cifar10" / file
    if not path.exists():
        pytest.skip(f"real data is not in {DATA}; set UNALIGNED_DATA")
    assert ua.load(f"{path}:state_dict/module.linear.weight").values.shape == (10, 64)
    convolution = f"{path}:state_dict/module.conv1.weight"
    assert ua.load(convolution, flatten=True).values.shape == (16, 27)


def objects_beside(folder, values):
    labels = np.array(["a", "b"] * (len(values) // 2), dtype=object)
    np.savez(folder / "cells.npz", X=values, labels=labels)
    return folder / "cells.npz"


@pytest.mark.parametrize("key", ["", ":X"])
def test_array_beside_python_objects_is_read(key, tmp_path):
    values = np.arange(12.0).reshape(6, 2)
    path = objects_beside(tmp_path, values)
    np.testing.assert_array_equal(ua.load(f"{path}{key}").values, values)
    assert list(ua.load_all(path)) == ["cells"]


def test_python_objects_are_never_unpickled(tmp_path, monkeypatch):
    path = objects_beside(tmp_path, np.arange(12.0).reshape(6, 2))
    monkeypatch.setattr(pickle, "load", None)
    monkeypatch.setattr(pickle, "loads", None)
    message = r"cells\.npz': The array 'labels' contains Python objects.*labels.*astype\(str\)"
    with pytest.raises(FileError, match=message):
        ua.load(f"{path}:labels")
    with pytest.raises(FileError, match=message):
        ua.load_all(path, group_by="labels")


def test_several_columns_group_by_combinations(tmp_path):
    frame = pd.DataFrame({"day": [0, 0, 7, 7] * 6, "donor": [*"ABBA"] * 6, "x": np.arange(24.0)})
    frame.loc[frame["donor"].eq("B") & frame["day"].eq(7), "donor"] = "C"
    frame.to_csv(tmp_path / "cells.csv", index=False)
    frame.to_parquet(tmp_path / "cells.parquet")
    for suffix in ("csv", "parquet"):
        found = ua.load_all(tmp_path / f"cells.{suffix}", group_by=["day", "donor"])
        assert list(found) == ["cells:0:A", "cells:0:B", "cells:7:A", "cells:7:C"]
        np.testing.assert_array_equal(found["cells:7:A"].values[:, 0], np.arange(3.0, 24.0, 4.0))
        known = found["cells:7:C"].metadata
        assert (known["day"], known["donor"]) == (7, "C")
    for wrong in (["day", "day"], ["day", 3], 3):
        with pytest.raises(InputError, match=r"the name of a column, or several|column twice"):
            ua.load_all(tmp_path / "cells.csv", group_by=wrong)
