"""Bars of `solver="sampled"` on slowly decaying spectra; K = 200, γ = 1e-8.

small      20,000 × 50, variances 1/i: error ≤ 0.05 in a quarter of the time of krylov at tol=1e-4
large      200,000 × 50, variances 1/i and 30 clusters: error ≤ 0.1 against `sampled_truth.json`,
           time at most 3 × the authors' way on 12,000 points
million    10⁶ × 50, both: stated error ≤ 0.1, time per point at most that of 200,000, 1 GiB above
           the data, the same values to 1e-6 from .npy, Parquet, h5ad and Dask
coverage   five families, N = 8000, 4 datasets: the share of runs whose error is at most the stated
           one (bar 0.92), and the median of stated / true error (bar 4); truth by krylov to 1e-5;
           also the share of single values inside their own limits (no bar)
Run: python benchmarks/bench_sampled.py small|large|million [rows]
     python benchmarks/bench_sampled.py coverage [seeds] [families]
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import authors_way
import numpy as np
from bench_scaling import Peak
from datasets import FAMILIES, clusters, decaying
from sampled_truth import ROWS, truth

import unaligned as ua
from unaligned.errors import AccuracyWarning
from unaligned.operators.diffusion import build_operator
from unaligned.operators.kernel import KernelSettings
from unaligned.spectra.base import Accuracy
from unaligned.spectra.krylov import Krylov
from unaligned.spectra.sampled import Sampled

K, GAMMA, TOL = 200, 1e-8, 0.1


def timed(function, *arguments, **options):
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = function(*arguments, **options)
    return found, time.perf_counter() - started


def sampled(data, tol=TOL, **options):
    solver = Sampled(refine=False)  # linear time, also where `tol` is missed
    return timed(
        ua.signature, data, n_eigenvalues=K, gamma=GAMMA, solver=solver, tol=tol, **options
    )


def report(name, found, seconds, truth=None):
    sizes = ", ".join(
        f"{found.stats[key]} {key.replace('_', ' ')}"
        for key in ("landmarks", "functions", "rows_sampled", "rows_isolated", "passes")
    )
    error = "" if truth is None else f"error {np.linalg.norm(found.values - truth):.3f}, "
    print(
        f"{name}: {error}stated {found.total_error_bound:.3f}, {seconds:.1f} s "
        f"({found.stats['seconds_solver']:.1f} of these the solver); {sizes}",
        flush=True,
    )


def small(n_rows: int) -> None:
    points = decaying(n_rows, 0)
    options = {"n_eigenvalues": K, "gamma": GAMMA, "solver": "krylov", "tol": 1e-4}
    wanted, krylov_seconds = timed(ua.signature, points, **options)
    for tol in (TOL, 0.05):
        found, seconds = sampled(points, tol)
        report(f"{n_rows} × 50, 1/i, tol={tol}", found, seconds, wanted.values)
        print(f"  {seconds / krylov_seconds:.2f} of the time of krylov, {krylov_seconds:.1f} s")


def large(n_rows: int) -> None:
    few = decaying(12_000, 0)
    _, authors = timed(authors_way.signature, few, K, GAMMA, np.random.default_rng(0))
    print(f"the authors' way on 12,000 points: {authors:.1f} s")
    for make in (decaying, clusters):
        found, seconds = sampled(make(n_rows, 0))
        wanted = truth(make.__name__) if n_rows == ROWS else None
        report(f"{n_rows} × 50, {make.__name__}", found, seconds, wanted)
        print(f"  {seconds / authors:.2f} × the authors' way")


def from_files(points, folder: Path) -> dict[str, object]:
    """Write the points in each format, and return what reads them by blocks."""
    import anndata
    import dask.array
    import pyarrow
    import pyarrow.parquet

    names = [f"f{i}" for i in range(points.shape[1])]
    np.save(folder / "points.npy", points)
    table = pyarrow.table(dict(zip(names, points.T, strict=True)))
    pyarrow.parquet.write_table(table, folder / "points.parquet", row_group_size=50_000)
    anndata.AnnData(points).write_h5ad(folder / "points.h5ad")
    chunked = dask.array.from_array(points, chunks=(70_000, points.shape[1]))
    files = {suffix: folder / f"points{suffix}" for suffix in (".npy", ".parquet", ".h5ad")}
    return {**files, "Dask": chunked}


def million(n_rows: int) -> None:
    for make in (decaying, clusters):
        with tempfile.TemporaryDirectory() as folder:
            fewer = Path(folder) / "fewer.npy"
            np.save(fewer, make(ROWS, 0))
            found, seconds = sampled(ua.Dataset.from_source(fewer))
            report(f"{ROWS} × 50, {make.__name__}, .npy", found, seconds)
            per_point, wanted = seconds / ROWS, None
            for name, source in from_files(make(n_rows, 0), Path(folder)).items():
                with Peak() as peak:
                    found, seconds = sampled(ua.Dataset.from_source(source))
                report(f"{n_rows} × 50, {make.__name__}, {name}", found, seconds)
                wanted = found if wanted is None else wanted
                apart = np.abs(found.values - wanted.values).max()
                print(
                    f"  {peak.most:.0f} MiB above the start, {apart:.1g} from .npy, per point "
                    f"{seconds / n_rows / per_point:.2f} × the time of {ROWS} rows",
                    flush=True,
                )


def coverage(n_seeds: int, *names: str) -> None:
    accuracy = Accuracy(GAMMA, 0.2)
    for name in names or FAMILIES:
        make = FAMILIES[name]
        ratios, singles = [], []
        for dataset in range(4):
            operator = build_operator(make(8000, dataset), "points", KernelSettings())
            exact = Krylov(max_columns=4000).solve(
                operator, K, Accuracy(GAMMA, 1e-5), np.random.default_rng(0)
            )
            truth = np.log(exact.eigenvalues + GAMMA)
            for seed in range(n_seeds):
                rng = np.random.default_rng([dataset, seed])
                found, _ = timed(Sampled(refine=False).solve, operator, K, accuracy, rng)
                error = np.linalg.norm(np.log(found.eigenvalues + GAMMA) - truth)
                ratios.append(found.total_log_error(GAMMA) / error)
                lower, upper = np.log(found.lower + GAMMA), np.log(found.upper + GAMMA)
                singles.append(np.mean((lower <= truth) & (truth <= upper)))
        share = np.mean(np.array(ratios) >= 1.0)
        print(
            f"{name}: {share:.3f} covered of {len(ratios)}, stated / true error "
            f"{np.median(ratios):.2f} (median), {np.min(ratios):.2f} at least; "
            f"{np.mean(singles):.2f} of single values inside their own limits",
            flush=True,
        )


if __name__ == "__main__":
    parts = {"small": (small, 20_000), "large": (large, 200_000), "million": (million, 10**6)}
    parts["coverage"] = (coverage, 25)
    run, default = parts[sys.argv[1]]
    run(int(float(sys.argv[2])) if len(sys.argv) > 2 else default, *sys.argv[3:])
