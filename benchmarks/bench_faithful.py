"""Bar: `exact` and `nystrom` agree with the authors' way on the four tori to 1e-3.

Run: python benchmarks/bench_faithful.py
"""

from __future__ import annotations

import authors_way
import numpy as np

import unaligned as ua
from unaligned.data.shapes import torus2, torus3, torus_angles

N, K, GAMMA, C = 3000, 200, 1e-8, 0.5
TORI = {
    "T2": (torus2, 2, 1.0),
    "T2Sc": (torus2, 2, C),
    "T3": (torus3, 3, 1.0),
    "T3Sc": (torus3, 3, C),
}


def main() -> None:
    tori = {
        name: make(torus_angles(N, angles, rng=seed), radius_scale=c)
        for seed, (name, (make, angles, c)) in enumerate(TORI.items())
    }
    theirs = {
        name: authors_way.signature(points, K, GAMMA, np.random.default_rng(0))
        for name, points in tori.items()
    }
    print(f"{'torus':6} {'solver':8} {'2-norm of the difference':>26}   bar 1e-3")
    for solver in ("exact", "nystrom"):
        for name, points in tori.items():
            ours = ua.signature(points, n_eigenvalues=K, gamma=GAMMA, solver=solver).values
            gap = np.linalg.norm(ours - theirs[name])
            print(f"{name:6} {solver:8} {gap:26.2e}   {'pass' if gap <= 1e-3 else 'FAIL'}")
    pairs = [("T2", "T3"), ("T2", "T2Sc"), ("T3", "T3Sc"), ("T3", "T2Sc"), ("T2", "T3Sc")]
    ours = ua.compare(tori, n_eigenvalues=K, gamma=GAMMA, solver="exact")
    for a, b in pairs:
        theirs_d, ours_d = np.linalg.norm(theirs[a] - theirs[b]), ours[a, b]
        gap = abs(theirs_d - ours_d)
        print(f"d({a}, {b}): authors' way {theirs_d:.4f}, exact {ours_d:.4f}, gap {gap:.1e}")


if __name__ == "__main__":
    main()
