"""The median of all squared distances, whose gradient flows through the middle pairs."""

from __future__ import annotations

import torch
from torch import Tensor

_SAMPLE = 1 << 18  # random pairs that bracket the median, to 0.4 % of all pairs


def middle_ranks(n_samples: int) -> tuple[list[int], list[int]]:
    """Return the ranks of the middle values of the N×N matrix: all, and those among pairs i < j.

    The zero diagonal is included, as in `operators.bandwidth`: N zeros come first, then every
    value off the diagonal twice.
    """
    total = n_samples * n_samples
    ranks = sorted({(total - 1) // 2, total // 2})
    return ranks, [(rank - n_samples) // 2 for rank in ranks if rank >= n_samples]


def middle_squares(squared: Tensor) -> Tensor:
    """Return the medians of matrices, (…, N, N) -> (…), the middle two averaged.

    `torch.median` would take the lower one.
    """
    n = squared.shape[-1]
    ranks, among_pairs = middle_ranks(n)
    if not among_pairs:
        return torch.zeros_like(squared[..., 0, 0])
    flat = squared.flatten(-2)
    with torch.no_grad():
        row, column = torch.triu_indices(n, n, offset=1, device=squared.device)
        places = row * n + column
        pairs = flat[..., places]
        lower = pairs.kthvalue(among_pairs[0] + 1, dim=-1, keepdim=True)
        chosen = [lower.indices]
        if among_pairs[-1] > among_pairs[0]:  # the next larger value, unless there are ties
            n_up_to = (pairs <= lower.values).sum(dim=-1, keepdim=True)
            larger = pairs.masked_fill(pairs <= lower.values, torch.inf)
            following = larger.argmin(dim=-1, keepdim=True)
            chosen.append(torch.where(n_up_to > among_pairs[-1], lower.indices, following))
        elif len(among_pairs) > 1:
            chosen.append(lower.indices)
        middle = places[torch.cat(chosen, dim=-1)]
    return flat.gather(-1, middle).sum(dim=-1) / len(ranks)


@torch.no_grad()
def tiled_middle_pairs(points: Tensor) -> Tensor:
    """Return the pairs of rows whose distances are in the middle of all, (1 or 2, 2).

    A sample of pairs brackets the middle, one pass over tiles counts the pairs below and keeps
    those inside. O(N² d) time, memory linear in N.
    """
    n = len(points)
    ranks = middle_ranks(n)[1]
    if not ranks:
        return torch.zeros((0, 2), dtype=torch.long, device=points.device)
    width = 4.0 * 0.5 / _SAMPLE**0.5  # four standard deviations of a sample quantile
    while True:
        low, high = _bracket(points, ranks, width)
        n_below, values, pairs = _collect(points, low, high)
        inside = [rank - n_below for rank in ranks]
        if inside[0] >= 0 and inside[-1] < len(values):
            order = values.argsort()
            return pairs[order[torch.tensor(inside, device=order.device)]]
        width *= 8.0


def _bracket(points: Tensor, ranks: list[int], width: float) -> tuple[float, float]:
    """Return an interval that holds these ranks of the sorted pairs with high probability."""
    n = len(points)
    n_pairs = n * (n - 1) // 2
    if n_pairs <= _SAMPLE or width >= 0.5:
        return -1.0, float("inf")
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(n, (_SAMPLE,), generator=generator)
    second = (first + torch.randint(1, n, (_SAMPLE,), generator=generator)) % n
    first, second = first.to(points.device), second.to(points.device)
    squares = (points[first] - points[second]).square().sum(dim=-1).sort().values
    low = int((ranks[0] / n_pairs - width) * _SAMPLE)
    high = int((ranks[-1] / n_pairs + width) * _SAMPLE)
    return (
        float(squares[low]) if low >= 0 else -1.0,
        float(squares[high]) if high < _SAMPLE else float("inf"),
    )


def _collect(
    points: Tensor, low: float, high: float, *, tile_size: int = 1 << 22
) -> tuple[int, Tensor, Tensor]:
    """Return the number of pairs i < j below `low`, and those from `low` to `high`.

    `tile_size` squared distances, by default 32 MB, are in memory at a time.
    """
    n = len(points)
    step = max(1, tile_size // n)
    centred = points - points.mean(dim=0)
    norms = centred.square().sum(dim=-1)
    n_below, values, pairs = 0, [], []
    columns = torch.arange(n, device=points.device)
    for start in range(0, n, step):
        rows = columns[start : start + step]
        products = centred[start : start + step] @ centred.T
        squared = norms[start : start + step, None] + norms - 2.0 * products
        above = columns > rows[:, None]
        n_below += int((above & (squared < low)).sum())
        i, j = torch.nonzero(above & (squared >= low) & (squared <= high), as_tuple=True)
        values.append(squared[i, j])
        pairs.append(torch.stack([rows[i], j], dim=1))
    return n_below, torch.cat(values), torch.cat(pairs)
