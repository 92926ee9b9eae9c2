"""LES as a loss: between two batches, or to a reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ... import _check, defaults
from ...errors import InputError, InputTypeError, RecipeMismatchError
from ...inference.partition import SHARE
from ...spectra.signature import Signature
from .spectrum import require_dense, signature

REDUCTIONS = ("mean", "sum", "none")


class LESLoss(nn.Module):
    r"""The squared LES distance of two geometries, estimated without bias from mini-batches.

    Both batches are cut into blocks of b consecutive rows, whose signatures s and t give

    .. math:: U = \|\bar s - \bar t\|^2 - \frac{\operatorname{tr} \operatorname{cov}(s)}{n_s}
              - \frac{\operatorname{tr} \operatorname{cov}(t)}{n_t},

    the statistic of `ua.permutation_test`: an unbiased estimate of the squared distance of mean
    block signatures. It is 0 on average for two samples of one geometry, where the plain squared
    distance is their sampling noise, and can be negative. Rows must be in random order, as
    shuffling loaders return them; a remainder of less than a block is not used.

    Parameters
    ----------
    reference
        None to compare two batches; points, (M, d), that every batch is compared with; or a
        `Signature` of n rows, whose recipe is used: batches are then cut into blocks of n rows,
        because signatures of different sizes are not comparable, and only the noise of the batch
        is subtracted, where it has two blocks or more.
    reduction
        Of a batch of clouds, (…, N, d): `"mean"`, `"sum"` or `"none"`.
    squared
        Return U; False returns √max(U, 0), with gradient 0 where U ≤ 0.
    n_eigenvalues
        K; None is a third of the block size, at most 200.
    block_size
        b; None is a quarter of the smaller batch. Each batch needs two blocks.
    gamma, bandwidth, bandwidth_factor, detach_bandwidth, landmarks
        As for `signature`.

    Examples
    --------
    >>> import torch
    >>> import unaligned as ua
    >>> ring = torch.randn(256, 2, dtype=torch.float64)
    >>> ring = ring / ring.norm(dim=1, keepdim=True)
    >>> cloud = torch.randn(256, 3, dtype=torch.float64, requires_grad=True)
    >>> loss = ua.torch.LESLoss(ring)(cloud)
    >>> loss.backward()
    >>> bool(loss > 0), cloud.grad.shape
    (True, torch.Size([256, 3]))
    """

    reference: Tensor | None

    def __init__(
        self,
        reference: Any = None,
        *,
        reduction: str = "mean",
        squared: bool = True,
        n_eigenvalues: int | None = None,
        block_size: int | None = None,
        gamma: float | None = None,
        bandwidth: float | str | None = None,
        bandwidth_factor: float | None = None,
        detach_bandwidth: bool = False,
        landmarks: int | None = None,
    ) -> None:
        super().__init__()
        self.reduction = _check.one_of("reduction", reduction, REDUCTIONS)
        self.squared = _check.flag("squared", squared)
        self.n_eigenvalues = _check.optional_int("n_eigenvalues", n_eigenvalues)
        self.block_size = _check.optional_int("block_size", block_size, minimum=2)
        given = {"gamma": gamma, "bandwidth": bandwidth, "bandwidth_factor": bandwidth_factor}
        recipe: dict[str, Any] = {name: v for name, v in given.items() if v is not None}
        self.is_signature = isinstance(reference, Signature)
        if isinstance(reference, Signature):
            recipe = self._adopt(reference, recipe)
            reference = torch.from_numpy(reference.values.copy())
        elif reference is not None:
            reference = _as_points(reference)
        self.options = {**recipe, "detach_bandwidth": detach_bandwidth, "landmarks": landmarks}
        self.register_buffer("reference", reference, persistent=False)

    def _adopt(self, found: Signature, given: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a signature; raise where the loss cannot follow its recipe."""
        recipe = found.recipe
        expected: dict[str, Any] = {"kernel": "gaussian", "metric": "euclidean"}
        expected["n_neighbors"] = None
        expected |= {"robust": False, "preprocess": (), "kind": "points"}
        for name, value in expected.items():
            if getattr(recipe, name) != value:
                raise RecipeMismatchError(
                    f"reference has {name}={getattr(recipe, name)!r}; LESLoss computes signatures "
                    f"of points with {name}={value!r}."
                )
        own = {name: getattr(recipe, name) for name in ("gamma", "bandwidth", "bandwidth_factor")}
        own_sizes = {"n_eigenvalues": found.n_eigenvalues, "block_size": found.n_samples}
        asked = {name: getattr(self, name) for name in own_sizes if getattr(self, name)}
        for name, value in {**given, **asked}.items():
            if value != {**own, **own_sizes}[name]:
                raise RecipeMismatchError(
                    f"{name}={value!r} was given, but reference has {(own | own_sizes)[name]!r} "
                    f"(rows of a block are its n_samples). Leave {name} out."
                )
        self.n_eigenvalues, self.block_size = found.n_eigenvalues, found.n_samples
        return own

    if TYPE_CHECKING:  # torch declares Any
        __call__: Callable[..., Tensor]

    def forward(self, points: Tensor, other: Tensor | None = None) -> Tensor:
        """Return the loss of points against another batch or the reference.

        Parameters
        ----------
        points
            A batch, (…, N, d), in random order.
        other
            The second batch, (…, M, d'); None where the loss has a reference.

        Returns
        -------
        Tensor
            A number, or (…) with `reduction="none"`.
        """
        if (other is None) == (self.reference is None):
            raise InputError(
                "LESLoss() compares two batches: call it with (points, other); "
                "LESLoss(reference) compares each batch with the reference: call it with (points)."
            )
        target = other if other is not None else self.reference
        if self.is_signature:
            first = self._blocks("points", points, self.block_size, least=1)
            found = _corrected(first, target.to(first))  # type: ignore[union-attr]
        else:
            size = self._block_size(points, target)
            first = self._blocks("points", points, size)
            found = _corrected(first, self._blocks("other", target, size))
        if not self.squared:
            positive = found > 0
            found = torch.where(positive, torch.where(positive, found, 1.0).sqrt(), 0.0)
        if self.reduction == "none":
            return found
        return found.mean() if self.reduction == "mean" else found.sum()

    def _block_size(self, points: Any, other: Any) -> int:
        _require_batch("points", points)
        _require_batch("other", other)
        # Four blocks of a batch; fewer than 8 rows have too few eigenvalues.
        return self.block_size or max(min(points.shape[-2], other.shape[-2]) // 4, 8)

    def _blocks(self, name: str, points: Any, size: int | None, least: int = 2) -> Tensor:
        """Return the signatures of the blocks of a batch, (…, blocks, K)."""
        _require_batch(name, points)
        rows, size = points.shape[-2], int(size or 1)
        n_blocks = rows // size
        if n_blocks < least:
            what = "the rows of the reference" if self.is_signature else "block_size"
            raise InputError(
                f"{name} has {rows} rows, fewer than {least} × {size}, {what}. Give larger "
                "batches, or "
                f"{'a reference of fewer rows' if self.is_signature else 'a smaller block_size'}."
            )
        used = points[..., : n_blocks * size, :]
        cut = used.reshape(*points.shape[:-2], n_blocks, size, points.shape[-1])
        k = self.n_eigenvalues or min(max(size // SHARE, 3), defaults.N_EIGENVALUES)
        return signature(cut, n_eigenvalues=k, **self.options)

    def extra_repr(self) -> str:
        """Return the settings that the representation of a module shows.

        Returns
        -------
        str
            Of the target, the reduction and whether it is squared.
        """
        target = "two batches"
        if self.reference is not None:
            target = "a signature" if self.is_signature else f"{len(self.reference)} points"
        return f"{target}, reduction={self.reduction!r}, squared={self.squared}"


def _require_batch(name: str, points: Any) -> None:
    if not isinstance(points, Tensor) or points.ndim < 2:
        raise InputTypeError(
            f"{name} must be a tensor of (…, N, d), not {_check.shape_of(points)}."
        )
    require_dense(name, points)


def _as_points(reference: Any) -> Tensor:
    """Return the points of a reference as a tensor without gradients."""
    if not isinstance(reference, Tensor):
        try:
            reference = torch.tensor(np.asarray(getattr(reference, "values", reference)))
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputTypeError(
                f"reference must be a Signature, points or None, not {_check.shape_of(reference)}."
            ) from error
    require_dense("reference", reference)
    if reference.ndim != 2 or not reference.is_floating_point():
        raise InputError(
            "reference must be floating-point points of (M, d); got "
            f"{_check.shape_of(reference)} of {reference.dtype}."
        )
    points: Tensor = reference.detach()
    return points


def _corrected(first: Tensor, second: Tensor) -> Tensor:
    """Return the corrected squared distance of mean signatures, (…).

    `first` is (…, blocks, K); `second` too, or one signature, (K,), that has no noise.
    """
    is_one = second.ndim == 1
    means = first.mean(dim=-2), second if is_one else second.mean(dim=-2)
    found = (means[0] - means[1]).square().sum(dim=-1)
    for blocks in (first,) if is_one else (first, second):
        n = blocks.shape[-2]
        if n > 1:
            found = found - blocks.var(dim=-2, correction=1).sum(dim=-1) / n
    return found
