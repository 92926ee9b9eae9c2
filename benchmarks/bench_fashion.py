"""Fashion-MNIST, 70,000 × 784, as it is and with `pca:50`, against the authors' way on 12,000.

The images are those of Debian's `dataset-fashion-mnist`. Bars: the stated error below the sampling
noise, and at most 3 × the time of the authors' way. The error of principal components by blocks is
that of the distances between 1000 rows, against a full decomposition.

    python benchmarks/bench_fashion.py [folder with the .gz files]
"""

from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path

import authors_way
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

import unaligned as ua
from unaligned.rows import transforms
from unaligned.rows.source import ArrayRows

FOLDER = Path("/usr/share/datasets/fashion-mnist")
K, GAMMA = 200, 1e-8


def images(path: Path) -> np.ndarray:
    """Return the images of an idx file, (N, 784)."""
    return np.frombuffer(gzip.open(path).read(), dtype=np.uint8, offset=16).reshape(-1, 784)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    if not folder.is_dir():
        sys.exit(f"{folder} does not exist: apt-get install dataset-fashion-mnist")
    points = np.vstack(
        [images(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    )
    rng = np.random.default_rng(0)
    some = points[rng.permutation(len(points))].astype(np.float64)
    started = time.perf_counter()
    authors_way.signature(some[:12_000], K, GAMMA, rng)
    authors = time.perf_counter() - started
    print(f"authors' way on 12,000 rows: {authors:.1f} s", flush=True)
    for steps in (None, "pca:50"):
        started = time.perf_counter()
        found = ua.signature(points, n_eigenvalues=K, gamma=GAMMA, preprocess=steps)
        seconds = time.perf_counter() - started
        print(
            f"{len(points):,} rows, preprocess={steps}: {seconds:.1f} s, {seconds / authors:.2f} "
            f"of that (bar 3); {found.stats['chosen']}, "
            f"stated error {found.total_error_bound:.3f}, "
            f"sampling noise about {found.stats.get('sampling_noise', float('nan')):.3f}",
            flush=True,
        )
    exact = PCA(50, svd_solver="full").fit_transform(some[:10_000])[:1000]
    for columns in (4000, 100):  # by the covariance, and by subspace iteration
        transforms.COVARIANCE_COLUMNS = columns
        scores = transforms.preprocessed_rows(ArrayRows(some[:10_000]), ("pca:50",)).take(
            np.arange(1000)
        )
        error = np.abs(pdist(scores) / pdist(exact) - 1).max()
        way = "covariance" if columns > 784 else "subspace iteration"
        print(f"pca:50 by {way}: largest relative error of a distance {error:.1e}", flush=True)


if __name__ == "__main__":
    main()
