"""A benchmark of Gaussian clusters: seen classes are apart, unseen ones overlap."""

import numpy as np

from unaligned.experiments.few_shot import Benchmark
from unaligned.experiments.tasks import Tasks

SMALL = {
    "embedder": "resnet20",
    "benchmarks": ("fc100", "cifar-fs"),
    "shots": (1, 5),
    "n_references": 3,
    "per_class": 40,
    "n_eigenvalues": 60,
    "transport_per_class": 8,
    "rounds": 3,
    "n_draws": 2,
    "n_test_tasks": 3,
    "timed_pairs": 1,
}


def clusters(n_classes, spread, rng):
    centres = spread * rng.normal(size=(n_classes, 10))
    return {f"class {i}": centre + rng.normal(size=(40, 10)) for i, centre in enumerate(centres)}


def synthetic_benchmark(seed, overlap=0.3):
    rng = np.random.default_rng(seed)
    unseen = {f"new {name}": points for name, points in clusters(8, overlap, rng).items()}
    return Benchmark(clusters(12, 6.0, rng), unseen)


def small_tasks(**settings):
    """Tasks with benchmarks that need neither data nor PyTorch."""
    experiment = Tasks(**{**SMALL, **settings})
    for i, name in enumerate(experiment.benchmarks):
        experiment._loaded[name] = synthetic_benchmark(i, overlap=0.3 + i)
    return experiment
