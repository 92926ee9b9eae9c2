"""What the memory there is means for a matrix."""

from __future__ import annotations

from ..data.memory import available_memory

_SHARE = 4  # without a limit, one matrix may take a quarter: solvers need copies and a basis


def fits_into_memory(n_bytes: int) -> bool:
    """Whether one matrix of so many bytes leaves room for the work with it."""
    return n_bytes <= available_memory() // _SHARE


def storage_for(n_samples: int, memory_limit: int | None) -> str:
    """Return `dense` if 8 N² bytes fit into `memory_limit`, else `tiled`.

    Without a limit, a quarter of the memory that is available now counts as the limit.

    Examples
    --------
    >>> storage_for(1000, memory_limit=8_000_000), storage_for(1001, memory_limit=8_000_000)
    ('dense', 'tiled')
    """
    n_bytes = 8 * n_samples * n_samples
    fits = fits_into_memory(n_bytes) if memory_limit is None else n_bytes <= memory_limit
    return "dense" if fits else "tiled"
