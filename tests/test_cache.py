"""The cache of signatures."""

import os

import numpy as np
import pytest

import unaligned as ua
from unaligned import cache
from unaligned.cache import is_cached
from unaligned.errors import FileError, InputError, UnalignedWarning
from unaligned.metrics.base import SpectralDistance
from unaligned.metrics.registry import DISTANCES


def clouds(n=3):
    rng = np.random.default_rng(0)
    return {f"cloud {i}": rng.normal(size=(50, 3)) for i in range(n)}


def compared(folder, data=None, **options):
    return ua.compare(data or clouds(), cache=folder, **{"n_eigenvalues": 9, **options})


def cached(comparison):
    return [is_cached(s) for s in comparison.signatures.values()]


@pytest.fixture
def computed(monkeypatch):
    """The names of the datasets described during the test."""
    names = []
    usual = SpectralDistance.describe

    def describe(self, dataset, seed, engine=None):
        names.append(dataset.name)
        return usual(self, dataset, seed, engine)

    monkeypatch.setattr(SpectralDistance, "describe", describe)
    return names


def test_second_run_computes_nothing_and_agrees(tmp_path, computed):
    first = compared(tmp_path)
    assert cached(first) == [False] * 3
    computed.clear()
    again = compared(tmp_path)
    assert computed == []
    assert cached(again) == [True] * 3
    assert np.array_equal(first.distances, again.distances)
    assert np.array_equal(first.error_bounds, again.error_bounds)


def test_new_data_is_computed_and_names_do_not_matter(tmp_path, computed):
    compared(tmp_path)
    computed.clear()
    named = {name.upper(): values for name, values in clouds(4).items()}
    result = compared(tmp_path, named)
    assert computed == ["CLOUD 3"]
    assert result.signatures["CLOUD 1"].name == "CLOUD 1"


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 1e-6},
        {"n_eigenvalues": 8},
        {"tol": 1e-6},
        {"rng": 1},
        {"solver": "exact"},
        {"bandwidth_factor": 3.0},
        {"preprocess": ["standardize"]},
    ],
    ids=str,
)
def test_different_settings_have_different_entries(tmp_path, options):
    compared(tmp_path)
    assert cached(compared(tmp_path, **options)) == [False] * 3
    assert cached(compared(tmp_path, **options)) == [True] * 3


def test_different_numerics_have_different_entries(tmp_path, monkeypatch):
    compared(tmp_path)
    monkeypatch.setattr(cache, "_NUMERICS", cache._NUMERICS + 1)
    assert cached(compared(tmp_path)) == [False] * 3


def test_distances_of_one_family_share_their_signatures(tmp_path):
    compared(tmp_path)
    assert cached(compared(tmp_path, distance="imd-diffusion")) == [True] * 3


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_damaged_entry_is_replaced(tmp_path, damage):
    first = compared(tmp_path)
    for entry in tmp_path.iterdir():
        entry.write_bytes(entry.read_bytes()[:-40] if damage is None else damage)
    again = compared(tmp_path)
    assert cached(again) == [False] * 3
    assert np.array_equal(first.distances, again.distances)
    assert cached(compared(tmp_path)) == [True] * 3


def test_interrupted_run_keeps_finished_signatures(tmp_path, monkeypatch, computed):
    usual = SpectralDistance.describe

    def stopping(self, dataset, seed, engine=None):
        if dataset.name == "cloud 2":
            raise KeyboardInterrupt
        return usual(self, dataset, seed, engine)

    with monkeypatch.context() as patch:
        patch.setattr(SpectralDistance, "describe", stopping)
        with pytest.raises(KeyboardInterrupt, match="during describing: 2 of 3 datasets done"):
            compared(tmp_path, n_jobs=1)
    computed.clear()
    compared(tmp_path)
    assert computed == ["cloud 2"]


def test_processes_write_to_the_cache(tmp_path):
    compared(tmp_path, engine="processes", n_jobs=2)
    assert cached(compared(tmp_path)) == [True] * 3


def test_functions_and_other_distances_are_not_cached(tmp_path):
    def apart(a, b):
        return float(np.linalg.norm(a - b))

    compared(tmp_path, metric=apart)
    ua.compare(clouds(), distance="mmd", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_created_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cache=.*file' cannot be used .*cache=None"):
        compared(tmp_path / "file")


def test_full_disk_warns_and_keeps_the_result(tmp_path, monkeypatch):
    def full(self, path):
        cause = OSError(28, "No space left on device")
        raise FileError(f"Cannot write {path}: No space left on device.") from cause

    monkeypatch.setattr(ua.Signature, "save", full)
    with pytest.warns(UnalignedWarning, match="Not kept in the cache .*: No space left") as caught:
        result = compared(tmp_path)
    assert len({str(warning.message) for warning in caught}) == 1, "shown once, not for each"
    assert np.array_equal(result.distances, ua.compare(clouds(), n_eigenvalues=9).distances)


def aged(folder, seconds):
    """Move the modification times of all files into the past."""
    for path in folder.iterdir():
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_least_recently_used_is_removed_first(tmp_path):
    compared(tmp_path)
    aged(tmp_path, 100)
    used = {name: clouds()[name] for name in ("cloud 0", "cloud 2")}
    compared(tmp_path, used)
    kept = ua.Cache(tmp_path)
    n_bytes = kept.info().n_bytes
    assert kept.clear(keep_bytes=n_bytes) == 0
    assert kept.clear(keep_bytes=n_bytes - 1) == 1
    again = compared(tmp_path)
    assert cached(again) == [True, False, True]


def test_comparison_clears_the_cache_to_its_limit(tmp_path):
    compared(tmp_path)
    # One byte too few for all three, whose sizes differ by the digits of their timings.
    small = ua.Cache(tmp_path, max_bytes=ua.Cache(tmp_path).info().n_bytes - 1)
    aged(tmp_path, 100)
    assert cached(compared(small)).count(True) == 2, "one was removed when it began"
    assert small.info().n_signatures == 3, "and is there again until the next one"


def test_clearing_keeps_other_files(tmp_path):
    compared(tmp_path)
    others = ["results.npz", "notes.txt", f"{'a' * 31}.npz", f"{'g' * 32}.npz"]
    for name in others:
        (tmp_path / name).write_text("mine")
    assert ua.Cache(tmp_path).clear() == 3
    assert {path.name for path in tmp_path.iterdir()} == set(others)


def test_old_temporary_files_are_removed(tmp_path):
    dead, alive = (tmp_path / f".{'a' * 32}.npz.{letter * 16}" for letter in "bc")
    dead.write_text("half")
    aged(tmp_path, 2 * 3600)
    alive.write_text("half")
    assert ua.Cache(tmp_path).clear() == 0
    assert not dead.exists()
    assert alive.exists()


def test_missing_folder_is_an_empty_cache(tmp_path):
    nowhere = ua.Cache(tmp_path / "nowhere")
    assert nowhere.info().n_signatures == nowhere.clear() == 0
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ua.Cache(3), r"folder=3 must be a path"),
        (lambda: ua.Cache("x", max_bytes=-1), r"max_bytes=-1 must be at least 0"),
        (lambda: ua.Cache("x").clear(keep_bytes=1.5), r"keep_bytes=1.5 must be a whole number"),
        (lambda: compared(""), r"cache='' must be a path"),
    ],
)
def test_invalid_settings_raise(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [
        ("linux", "XDG_CACHE_HOME", "there/unaligned"),
        ("linux", None, ".cache/unaligned"),
        ("darwin", None, "Library/Caches/unaligned"),
        ("win32", "LOCALAPPDATA", "there/unaligned"),
    ],
)
def test_default_folder_of_each_platform(monkeypatch, platform, variable, end):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "/there")
    monkeypatch.setattr(cache.sys, "platform", platform)
    assert cache.default_folder().as_posix().endswith(end)


def test_every_spectral_distance_can_be_cached(tmp_path):
    spectral = [n for n, cls in DISTANCES.items() if issubclass(cls, SpectralDistance)]
    cases = [(name, {}) for name in spectral] + [("shape-dna", {"laplacian": "robust"})]
    for _ in range(2):
        for name, options in cases:
            if options:
                pytest.importorskip("robust_laplacian", reason="the extra is not installed")
            without = compared(None, distance=name, **options)
            found = compared(tmp_path, distance=name, **options)
            np.testing.assert_allclose(found.distances, without.distances, rtol=1e-9)
