"""
A million points
================

Samples of two 2-tori, the second with half the inner radius (the shapes of the paper's Fig. 1), from
10³ to 10⁶ points. From 50,000 rows on points are read block by block, with landmarks and a
certificate over all rows. The distance moves little, by sampling: its bars are the error of the
computation only.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import unaligned as ua
from unaligned.data.shapes import torus2, torus_angles

sizes = [1000, 10_000, 100_000, 1_000_000]
distances, bounds, seconds = [], [], []
for n in sizes:
    start = time.perf_counter()
    a = ua.signature(torus2(torus_angles(n, rng=0)), tol=1e-3)
    b = ua.signature(torus2(torus_angles(n, rng=1), radius_scale=0.5), tol=1e-3)
    seconds.append(time.perf_counter() - start)
    distances.append(ua.distance(a, b))
    bounds.append(a.total_error_bound + b.total_error_bound)
    print(f"{n:9,} points: LES {distances[-1]:.3f} ± {bounds[-1]:.3f} ({a.bound_kind})")

# %%
# The time here is that of both signatures on the machine that built this page.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.errorbar(sizes, distances, np.array(bounds), marker="o", capsize=4)
left.set(xscale="log", xlabel="points of each torus", ylabel="LES between them", ylim=(0, 16))
right.loglog(sizes, seconds, marker="o")
right.set(xlabel="points of each torus", ylabel="seconds, both signatures")
plt.show()
