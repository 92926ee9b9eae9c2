"""What a user with a type checker writes; mypy and pyright check it."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import torch

import unaligned as ua
from unaligned.explanation import Explanation, ScaleExplanation
from unaligned.inference.association import Correlation, GroupTest
from unaligned.inference.verdict import DriftCheck
from unaligned.matching import Match
from unaligned.store import Neighbour, Record

Floats = npt.NDArray[np.float64]

points = np.zeros((10, 3))
signature = ua.signature(points, n_eigenvalues=5, gamma=1e-8)
assert_type(signature, ua.Signature)
assert_type(signature.values, Floats)
assert_type(ua.distance(signature, points), float)
loaded = ua.load_all("cells.h5ad", group_by="day")
assert_type(loaded, dict[str, ua.Dataset])
p_value: float = ua.permutation_test(points, points).p_value
drifted: bool = ua.DriftMonitor(points).check(points).is_drift
assert_type(ua.DriftMonitor.load("monitor.npz").history, list[DriftCheck])

# A comparison, or several by name.
found = ua.compare({"a": points, "b": points}, distance="les", rng=0, n_jobs=2)
assert_type(found, ua.Comparison)
assert_type(found["a", "b"], float)
names: tuple[str, ...] = tuple(found.names)
total: float = float(found.distances.sum())
several = ["les", "mmd"]
assert_type(ua.compare([points], distance=several, subsample=9), dict[str, ua.Comparison])
assert_type(found.embed("mds", 2), Floats)
assert_type(found.linkage(), Floats)
assert_type(found.add({"c": points}), ua.Comparison)
assert_type(found.match(), Match)
assert_type(found.correlate([1.0, 2.0]), Correlation)
assert_type(found.permanova(["x", "y"]), GroupTest)
assert_type(found.signatures, dict[str, ua.Signature])
assert_type(ua.Comparison.load("found.npz"), ua.Comparison)

# What explains a distance depends on the question.
assert_type(ua.explain(points, points), Explanation)
assert_type(ua.explain(points, points, by="rows", labels="auto").change, Floats)
assert_type(ua.explain(points, points, by="scale"), ScaleExplanation)
assert_type(found.explain("a", "b", [points, points]), Explanation)
assert_type(found.explain("a", "b", [points, points], by="scale")["dimension"].differs, bool)

with ua.Store("references.db") as store:
    assert_type(store.add(signature, name="a", tags={"day": 1}), bool)
    assert_type(store.extend([signature]), int)
    assert_type(store.names(), list[str])
    assert_type(store["a"], ua.Signature)
    assert_type(store.find("a"), Record | None)
    assert_type(store.nearest(points, k=2), list[Neighbour])
    assert_type(store.options, dict[str, Any])

transformer = ua.sklearn.SignatureTransformer(n_eigenvalues=5).fit([points])
assert_type(transformer, ua.sklearn.SignatureTransformer)
assert_type(transformer.transform([points]), Floats)
assert_type(transformer.signatures([points]), list[ua.Signature])
assert_type(ua.sklearn.DistanceTransformer("mmd").fit_transform([points]), Floats)
assert_type(ua.sklearn.KernelFromDistance().fit(points).transform(points), Floats)


batch = torch.randn(50, 3)
layers = ua.torch.activations(torch.nn.Linear(3, 2), [batch], pool="mean")
assert_type(layers, dict[str, ua.Dataset])
assert_type(ua.torch.LESLoss(signature, reduction="sum").forward(batch), torch.Tensor)
assert_type(ua.sc.get.les(object()), ua.Comparison)
assert_type(ua.torch.LESLoss()(batch, batch), torch.Tensor)
assert_type(ua.torch.signature(batch, n_eigenvalues=5), torch.Tensor)

# A misspelt name is an error.
ua.compar  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue] # noqa: B018
