"""Differentiable signatures: time against `torch.linalg.eigvalsh`, and landmarks against dense.

Bars: forward and backward of 64 clouds of 256 × 64, K = 50, take at most 1.3 times those of
`eigvalsh` on the same 64 matrices plus the kernel; N = 4096 by landmarks is at least 10 times
faster than dense with a gradient cosine of at least 0.99.
Run: python benchmarks/bench_torch.py [--repeats 5] [--dense-rows 4096] [--threads 2]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import torch

import unaligned as ua


def clouds(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def fastest(function: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several times in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def kernel(points: torch.Tensor) -> torch.Tensor:
    squared = torch.cdist(points, points).square()
    return torch.exp(-squared / (2.0 * squared.detach().flatten(-2).mean(dim=-1)[..., None, None]))


def against_eigvalsh(repeats: int) -> None:
    points = clouds(64, 256, 64).requires_grad_()
    with torch.no_grad():
        matrices = kernel(points)
    matrices.requires_grad_()

    def ours() -> object:
        values = ua.torch.signature(points, n_eigenvalues=50)
        return torch.autograd.grad(values.sum(), points)

    def plain() -> object:
        return torch.autograd.grad(torch.linalg.eigvalsh(matrices)[..., -50:].sum(), matrices)

    def only_kernel() -> object:
        return torch.autograd.grad(kernel(points).sum(), points)

    mine, eigen, kern = (fastest(f, repeats) for f in (ours, plain, only_kernel))
    ratio = mine / (eigen + kern)
    print(f"64 × 256 × 64, K = 50: ours {mine:.3f} s, eigvalsh {eigen:.3f} s, kernel {kern:.3f} s")
    print(f"  ratio {ratio:.2f} (bar: at most 1.3): {'pass' if ratio <= 1.3 else 'FAIL'}")


def landmarks_against_dense(n_rows: int, repeats: int) -> None:
    angle = 6.28 * torch.rand(n_rows, 3, generator=torch.Generator().manual_seed(0))
    torus = torch.cat([angle.cos(), angle.sin()], dim=1).double()
    for name, points in (("3-torus in 6-d", torus), ("N(0, I10)", clouds(n_rows, 10))):
        points = points.clone().requires_grad_()
        found = {}

        def gradient(rank: int | None, points: torch.Tensor = points, found: dict = found) -> None:
            values = ua.torch.signature(points, n_eigenvalues=50, landmarks=rank)
            found[rank] = values.detach(), torch.autograd.grad(values.sum(), points)[0]

        dense = fastest(lambda: gradient(None), 1)
        print(f"{name}, N = {n_rows}, K = 50: dense {dense:.2f} s")
        for rank in (100, 200, 400, 800):
            few = fastest(lambda rank=rank: gradient(rank), repeats)
            (a, slope), (b, other) = found[None], found[rank]
            error = float((a - b).norm())
            cosine = float(
                torch.nn.functional.cosine_similarity(slope.ravel(), other.ravel(), dim=0)
            )
            fine = dense >= 10 * few and cosine >= 0.99
            print(
                f"  {rank} landmarks: {few:.2f} s, {dense / few:.1f} × faster, error of the "
                f"signature {error:.1e}, gradient cosine {cosine:.6f}: {'pass' if fine else 'no'}"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process {peak:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dense-rows", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    against_eigvalsh(options.repeats)
    landmarks_against_dense(options.dense_rows, min(options.repeats, 3))


if __name__ == "__main__":
    main()
