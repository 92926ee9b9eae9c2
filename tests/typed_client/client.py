"""What a user with a type checker writes; mypy and pyright check it."""

from typing import assert_type

import numpy as np

import unaligned as ua

points = np.zeros((10, 3))
signature = ua.signature(points, n_eigenvalues=5, gamma=1e-8)
assert_type(signature, ua.Signature)
assert_type(ua.distance(signature, points), float)
found = ua.compare({"a": points, "b": points}, distance="les", rng=0)
assert_type(found, ua.Comparison)
assert_type(found["a", "b"], float)
names: tuple[str, ...] = tuple(found.names)
total: float = float(found.distances.sum())
loaded = ua.load_all("cells.h5ad", group_by="day")
assert_type(loaded, dict[str, ua.Dataset])
p_value: float = ua.permutation_test(points, points).p_value
drifted: bool = ua.DriftMonitor(points).check(points).is_drift
