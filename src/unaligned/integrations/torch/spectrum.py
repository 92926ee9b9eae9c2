"""Signatures that gradients flow through, dense and by landmarks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ... import _check, defaults
from ...errors import DegenerateDataError, InputError, InputTypeError
from .median import middle_ranks, middle_squares, tiled_middle_pairs

KINDS = ("points", "distances", "affinity", "spd")


def signature(
    points: Tensor,
    *,
    n_eigenvalues: int,
    gamma: float = defaults.GAMMA,
    bandwidth: float | str = "median",
    bandwidth_factor: float = defaults.BANDWIDTH_FACTOR,
    detach_bandwidth: bool = False,
    kind: str = "points",
    landmarks: int | None = None,
) -> Tensor:
    r"""Return log-Euclidean signatures that gradients flow through.

    .. math:: F_i = \log(\lambda_i(W) + \gamma), \qquad i = 1, \dots, K

    with W of Eqs. 1-4, the values of `ua.signature(solver="exact")`. At equal eigenvalues the
    gradient of each alone is one of several; that of their sum is unique. O(N² d + N³) time and
    about 50 N² bytes per signature; with landmarks O(N² d + N r²) time and O(N (d + r)) memory.

    Parameters
    ----------
    points
        Shape (…, N, d), or (…, N, N) for other kinds; any device. Single precision is computed in
        double for γ < 1e-5, where rounding would exceed γ; half precision always.
    n_eigenvalues
        K, at most N.
    gamma
        γ.
    bandwidth
        `"median"` (σ² = bandwidth_factor · the median of the whole N×N matrix of squared
        distances, its zero diagonal included), `"mean"`, or σ² itself.
    bandwidth_factor
        Of the two rules.
    detach_bandwidth
        Treat σ² as a constant. The gradient is then not that of the signature.
    kind
        `"points"`, `"distances"` (a distance matrix), `"affinity"`, or `"spd"` (eigenvalues of the
        matrix itself).
    landmarks
        r, at least K: approximate the affinity by its columns at r points, the next being the
        farthest from those before it in the geometry of the kernel (pivoted Cholesky). For N
        beyond 1000 or so; the error falls with r as fast as the spectrum does.

    Returns
    -------
    Tensor
        Shape (…, K), of the precision of the points (float32 for half precision).

    Examples
    --------
    >>> import torch
    >>> import unaligned as ua
    >>> points = torch.randn(8, 50, 3, dtype=torch.float64, requires_grad=True)
    >>> values = ua.torch.signature(points, n_eigenvalues=10)
    >>> values.shape, bool(torch.autograd.grad(values.sum(), points)[0].isfinite().all())
    (torch.Size([8, 10]), True)
    """
    k = _check.positive_int("n_eigenvalues", n_eigenvalues)
    _check.one_of("kind", kind, KINDS)
    level = _check.real_number("gamma", gamma, minimum=0.0)
    _check.flag("detach_bandwidth", detach_bandwidth)
    values = _working(points, kind, k, level)
    if kind == "spd":
        eigenvalues = torch.linalg.eigvalsh(_symmetric(values))
    elif landmarks is not None:
        eigenvalues = _landmark_eigenvalues(
            values, kind, k, landmarks, bandwidth, bandwidth_factor, detach_bandwidth
        )
    else:
        affinity = values if kind == "points" else _symmetric(values)
        if kind != "affinity":
            squared = squared_distances(values, values) if kind == "points" else affinity.square()
            scale = _scale(squared, bandwidth, bandwidth_factor)
            affinity = _gaussian(squared, scale.detach() if detach_bandwidth else scale)
        eigenvalues = torch.linalg.eigvalsh(diffusion(affinity))
    largest = eigenvalues.flip(-1)[..., :k].clamp(min=0.0)
    found = torch.log(largest + level)
    return found.to(points.dtype if points.dtype == torch.float64 else torch.float32)


def _working(points: Any, kind: str, n_eigenvalues: int, gamma: float) -> Tensor:
    """Return the values in the precision of the computation, checked."""
    if not isinstance(points, Tensor):
        raise InputTypeError(
            f"points must be a torch.Tensor, not {_check.shape_of(points)}. For arrays use "
            "ua.signature, or torch.as_tensor."
        )
    require_dense("points", points)
    if not points.is_floating_point():
        raise InputTypeError(f"points must be floating-point, not {points.dtype}.")
    shape = tuple(points.shape)
    if len(shape) < 2 or 0 in shape:
        raise InputError(f"points must be (…, N, d) and not empty; the shape is {shape}.")
    if kind != "points" and shape[-1] != shape[-2]:
        raise InputError(f"kind={kind!r} needs a square matrix, (…, N, N); the shape is {shape}.")
    if shape[-2] < 2 and kind != "spd":
        raise InputError("points has one row; at least two are needed.")
    if n_eigenvalues > shape[-2]:
        raise InputError(
            f"n_eigenvalues={n_eigenvalues} needs at least {n_eigenvalues} samples; points has "
            f"{shape[-2]}. Lower n_eigenvalues."
        )
    _raise_if(~points.isfinite(), InputError, "points has NaN or infinite values.")
    # The rounding of single precision is about 1e-7 of the largest eigenvalue.
    single = points.dtype == torch.float32 and gamma >= 1e-5
    return points if single else points.double()


def require_dense(name: str, points: Tensor) -> None:
    """Raise for sparse and nested tensors."""
    if points.is_nested or points.layout != torch.strided:
        raise InputTypeError(
            f"{name} must be a dense tensor. Use {name}.to_dense() if it is sparse, and each of "
            f"{name}.unbind() if it is nested."
        )


def _raise_if(bad: Tensor, error: type[Exception], message: str) -> None:
    """Raise if any entry is True, on the CPU; elsewhere it would wait for the device."""
    if bad.device.type != "cpu" or torch.compiler.is_compiling():
        return
    try:
        found = bool(bad.any())
    except RuntimeError:  # inside of vmap
        return
    if found:
        raise error(message)


def _symmetric(matrix: Tensor) -> Tensor:
    """Return (A + Aᵀ)/2, so that gradients are symmetric."""
    return 0.5 * (matrix + matrix.mT)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Return squared distances of rows, (…, N, M), by one product after centring.

    Those of equal rows are 0 up to rounding, with finite gradients.
    """
    centre = first.mean(dim=-2, keepdim=True).detach()
    first, second = first - centre, second - centre
    norms, others = (x.square().sum(dim=-1, keepdim=True) for x in (first, second))
    left = torch.cat([first, norms, torch.ones_like(norms)], dim=-1)
    right = torch.cat([-2.0 * second, torch.ones_like(others), others], dim=-1)
    return left @ right.mT


def _scale(squared: Tensor, bandwidth: float | str, factor: float) -> Tensor:
    """Return σ² of matrices of squared distances, (…, 1, 1)."""
    rule = _rule(bandwidth, factor)
    if rule is not None:
        return squared.new_tensor(rule).expand(*squared.shape[:-2], 1, 1)
    mean = squared.mean(dim=(-2, -1))
    value = mean if bandwidth == "mean" else middle_squares(squared)
    _require_spread(value, mean, bandwidth)
    return (factor * value)[..., None, None]


def _rule(bandwidth: float | str, factor: float) -> float | None:
    """Return σ² where it is given, None for a rule."""
    _check.real_number("bandwidth_factor", factor, minimum=0.0, strict=True)
    if isinstance(bandwidth, str):
        _check.one_of("bandwidth", bandwidth, defaults.BANDWIDTH_RULES, or_number=True)
        return None
    return _check.real_number("bandwidth", bandwidth, minimum=0.0, strict=True)


def _require_spread(value: Tensor, mean: Tensor, bandwidth: float | str) -> None:
    """Raise if σ² is 0 up to rounding."""
    message = (
        f"bandwidth={bandwidth!r} gives σ²=0: half of all pairs of points or more are equal. "
        "Remove duplicates, or give bandwidth='mean' or a number (σ² itself)."
    )
    rounding = 16.0 * torch.finfo(value.dtype).eps
    _raise_if((value <= rounding * mean) | (mean <= 0), DegenerateDataError, message)


def _gaussian(squared: Tensor, scale: Tensor) -> Tensor:
    """Return the affinity, Eq. 1 [eq:affkern]."""
    return torch.exp(squared * (-1.0 / scale))


def diffusion(affinity: Tensor) -> Tensor:
    """Return W = diag(s) K diag(s) of Eqs. 2-4, see `DiffusionOperator`."""
    density = affinity.sum(dim=-1)
    degree = (affinity @ (1.0 / density)[..., None])[..., 0] / density
    s = 1.0 / (density * degree.sqrt())
    return affinity * (s[..., :, None] @ s[..., None, :])


def _landmark_eigenvalues(
    points: Tensor,
    kind: str,
    n_eigenvalues: int,
    landmarks: int,
    bandwidth: float | str,
    factor: float,
    detach: bool,
) -> Tensor:
    r"""Return the eigenvalues of W by landmarks, ascending.

    With features φ(x) = L⁻¹ k(S, x), K ≈ φ φᵀ, the r × r Gram matrix of φ s has the eigenvalues of
    W that are not 0.
    """
    if kind != "points":
        raise InputError(f"landmarks needs kind='points', not {kind!r}.")
    count = _check.positive_int("landmarks", landmarks, minimum=n_eigenvalues)
    points = points.double()
    count = min(count, points.shape[-2])
    scale = _linear_scale(points, bandwidth, factor)
    scale = scale.detach() if detach else scale
    pivots = _pivots(points.detach(), scale.detach(), count)
    chosen = torch.take_along_dim(points, pivots[..., None], dim=-2)
    own = _gaussian(squared_distances(chosen, chosen), scale)
    eye = torch.eye(own.shape[-1], dtype=own.dtype, device=own.device)
    factor_matrix = torch.linalg.cholesky(own + 1e-12 * eye)  # never singular
    columns = _gaussian(squared_distances(points, chosen), scale)
    features = torch.linalg.solve_triangular(factor_matrix, columns.mT, upper=False).mT
    density = (features @ features.sum(dim=-2)[..., None])[..., 0]
    weighted = (features / density[..., None]).sum(dim=-2)
    degree = (features @ weighted[..., None])[..., 0] / density
    scaled = features / (density * degree.sqrt())[..., None]
    found = torch.linalg.eigvalsh(scaled.mT @ scaled)
    missing = n_eigenvalues - found.shape[-1]  # of an affinity of a lower rank
    return torch.nn.functional.pad(found, (max(missing, 0), 0))


def _linear_scale(points: Tensor, bandwidth: float | str, factor: float) -> Tensor:
    """Return σ² of points, (…, 1, 1), in memory linear in N."""
    rule = _rule(bandwidth, factor)
    if rule is not None:
        return points.new_tensor(rule).expand(*points.shape[:-2], 1, 1)
    centred = points - points.mean(dim=-2, keepdim=True)
    mean = value = 2.0 * centred.square().sum(dim=(-2, -1)) / points.shape[-2]
    if bandwidth == "median":
        rows = points.reshape(-1, *points.shape[-2:])
        value = torch.stack([_middle_square(cloud) for cloud in rows]).reshape(mean.shape)
    _require_spread(value, mean, bandwidth)
    return (factor * value)[..., None, None]


def _middle_square(cloud: Tensor) -> Tensor:
    """Return the median of squared distances, from the pairs that are in the middle."""
    pairs = tiled_middle_pairs(cloud.detach())
    squares = (cloud[pairs[:, 0]] - cloud[pairs[:, 1]]).square().sum(dim=-1)
    return squares.sum() / len(middle_ranks(len(cloud))[0])


@torch.no_grad()
def _pivots(points: Tensor, scale: Tensor, count: int) -> Tensor:
    """Return the positions of landmarks by pivoted Cholesky, (…, r), the same r for a batch.

    Each is the point whose affinity those before it explain worst. O(N r (d + r)) time.
    """
    smallest = 1e-11  # residual: further landmarks would make their affinity singular
    rest = points.new_ones(points.shape[:-1])
    factors = points.new_zeros(*points.shape[:-1], count)
    found: list[Tensor] = []
    for i in range(count):
        worst, place = rest.max(dim=-1, keepdim=True)
        if i % 32 == 0 and i and float(worst.max()) < smallest:
            break
        found.append(place)
        pivot = torch.take_along_dim(points, place[..., None], dim=-2)
        column = _gaussian((points - pivot).square().sum(dim=-1, keepdim=True), scale)[..., 0]
        own = torch.take_along_dim(factors, place[..., None], dim=-2)
        column = column - (factors[..., :i] @ own[..., :i].mT)[..., 0]
        column = column / worst.clamp(min=smallest).sqrt()
        factors[..., i] = column
        rest = (rest - column.square()).clamp(min=0.0)
        rest.scatter_(-1, place, 0.0)
    return torch.cat(found, dim=-1)
