"""How many datasets are computed at a time."""

import threading

import numpy as np
import pytest

import unaligned as ua
from unaligned import execution
from unaligned.data.dataset import Dataset
from unaligned.execution import default_jobs


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr(execution, "available_cores", lambda: 4)


def sized(*sizes):
    """Datasets of these numbers of rows."""
    return [Dataset(np.arange(float(n))[:, None]) for n in sizes]


@pytest.mark.parametrize(
    ("sizes", "jobs"),
    [((100,) * 4, 4), ((100,) * 12, 4), ((100,), 1), ((1000, 100, 100, 100, 100), 1)],
)
def test_default_is_one_job_per_core_unless_one_dataset_is_most_of_the_work(
    four_cores, sizes, jobs
):
    assert default_jobs(sized(*sizes)) == jobs


def test_default_keeps_matrices_within_memory(four_cores, monkeypatch):
    monkeypatch.setattr(execution, "available_memory", lambda: 100 * 24 * 9000**2)
    assert default_jobs(sized(*[9000] * 8)) == 4
    monkeypatch.setattr(execution, "available_memory", lambda: 5 * 24 * 9000**2)
    assert default_jobs(sized(*[9000] * 8)) == 2
    monkeypatch.setattr(execution, "available_memory", lambda: 0)
    assert default_jobs(sized(*[9000] * 8)) == 1


def test_callable_distance_runs_in_the_calling_thread(four_cores):
    threads = set()

    def distance(a, b):
        threads.add(threading.get_ident())
        return abs(a.mean() - b.mean())

    ua.compare([np.eye(5) * i for i in range(4)], distance=distance)
    assert threads == {threading.get_ident()}


def test_number_of_jobs_does_not_change_values(four_cores):
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(80 + i, 3)) for i in range(5)]
    default, one = ua.compare(clouds), ua.compare(clouds, n_jobs=1)
    np.testing.assert_allclose(default.distances, one.distances, rtol=0, atol=1e-8)
    added = default.add({"new": rng.normal(size=(90, 2))})
    np.testing.assert_array_equal(added.distances[:5, :5], default.distances)
