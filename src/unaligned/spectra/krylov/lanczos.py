"""Block Lanczos with full reorthogonalisation, and a probabilistic bound on a norm."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eig_banded, eigvals_banded, qr
from scipy.special import gammaincinv

from ..._check import FloatArray
from ...engine.threads import inner, product
from ...operators.base import PSDOperator

EPS = float(np.finfo(np.float64).eps)
# Columns per block and steps of a probe of the complement: at most 192 products.
PROBE_WIDTH, PROBE_STEPS = 16, 12


class BlockLanczos:
    r"""An orthonormal basis Q of a block Krylov space, grown block by block.

    With the last block selected by E and its residual factor R,

    .. math:: W Q = Q T + Q_{next} R E^T, \qquad T = Q^T W Q \text{ block tridiagonal.}

    Every new block is orthogonalised twice, first to the blocks that it overlaps with in exact
    arithmetic and then, normalised, to all of Q: Ritz values of a basis that loses
    orthogonality come in spurious copies, which invalidate the bounds. Directions of the next
    block below rounding are replaced by random ones, so low rank, multiplicities beyond the block
    size and invariant subspaces are no special cases.

    The first block is `start`, or Gaussian. With `deflated`, the process uses the free part of the
    buffer of that process and runs on :math:`(I - Q_0 Q_0^T) W (I - Q_0 Q_0^T)`, the complement of
    what its basis spans.

    With products in single precision, the second orthogonalisation is in single precision too.
    The relative error of the Ritz values is then at most `orthogonality`, a bound on ‖QᵀQ - I‖ of
    four roundings (3.3e-7 to 4.6e-7 measured on noise, clusters and heavy tails).

    A step with m columns costs one product with W and 4 N m b operations, b being the block
    size `width`; 8 N m bytes. The buffer, (N, capacity), is column-major.
    """

    def __init__(
        self,
        operator: PSDOperator,
        buffer: FloatArray,
        width: int,
        rng: Generator,
        *,
        start: FloatArray | None = None,
        deflated: BlockLanczos | None = None,
    ) -> None:
        self.operator, self.buffer, self.rng = operator, buffer, rng
        self.first: int = deflated.columns if deflated else 0
        self.columns: int = self.first
        # Of a deflated basis, W maps only the last block out of its span.
        self._coupled = self.first - deflated.blocks[-1].shape[0] if deflated else 0
        self.width = width
        self.blocks: list[FloatArray] = []
        self.couplings: list[FloatArray] = []
        self._scale = 0.0
        self._product = np.empty((operator.n_samples, 0))
        self._rounded: Any = deflated._rounded if deflated else None
        first_block = self._gaussian(width) if start is None else start
        self._next, self.start = self._orthonormal(first_block, 0.0)

    def go_on_with(self, operator: PSDOperator) -> None:
        """Multiply by a rounded form of the operator from here on."""
        self.operator = operator
        self._rounded = np.empty(self.buffer.shape, dtype=np.float32, order="F")
        self._rounded[:, : self.columns] = self.buffer[:, : self.columns]

    @property
    def orthogonality(self) -> float:
        """A bound on ‖QᵀQ - I‖ beyond double precision."""
        return 0.0 if self._rounded is None else 4.0 * float(np.finfo(np.float32).eps)

    @property
    def exhausted(self) -> bool:
        """Whether the basis spans the whole space."""
        return self.columns == self.operator.n_samples

    @property
    def has_room(self) -> bool:
        """Whether the buffer holds another block."""
        return bool(0 < self._next.shape[1] <= self.buffer.shape[1] - self.columns)

    @property
    def residual(self) -> FloatArray:
        """R, the factor that couples the last block with the space outside of the basis."""
        return self.couplings[-1]

    def next_diagonal(self) -> FloatArray:
        """Return the next diagonal block of T; its product is kept for the next step."""
        if self._product.shape[1] == 0:
            self._product = self.operator.matmat(self._next)
        diagonal = self._next.T @ self._product
        return np.asarray(0.5 * (diagonal + diagonal.T))

    def expand(self) -> None:
        """Add the next block to the basis, multiply it by W, and compute the one after it."""
        block = self._next
        here = slice(self.columns, self.columns + block.shape[1])
        self.buffer[:, here] = block
        if self._rounded is not None:
            self._rounded[:, here] = block
        self.columns += block.shape[1]
        self.blocks.append(self.next_diagonal())
        product, self._product = self._product, np.empty((block.shape[0], 0))
        self._scale = max(self._scale, float(np.sqrt((product**2).sum(axis=0).max())))
        # Three terms: W times the last block overlaps with it and with the one before. A deflated
        # process also meets the residual of the deflated columns.
        since = self._coupled
        if not self.first:
            since = self.columns - sum(b.shape[0] for b in self.blocks[-2:])
        # Below this floor a direction is rounding.
        basis, coupling = self._orthonormal(product, 10.0 * EPS * self._scale, since=since)
        missing = min(self.width, self.operator.n_samples - self.columns) - basis.shape[1]
        if missing > 0:
            fresh, _ = self._orthonormal(self._gaussian(missing), 0.0, beside=basis)
            basis = np.hstack([basis, fresh])
            coupling = np.vstack([coupling, np.zeros((fresh.shape[1], block.shape[1]))])
        self._next = basis
        self.couplings.append(coupling)

    def band(self, correction: FloatArray | None = None) -> FloatArray:
        """Return T, its last diagonal block plus `correction`, in LAPACK's lower band form."""
        blocks = self.blocks
        if correction is not None:
            blocks = [*blocks[:-1], blocks[-1] + correction]
        band = np.zeros((self.width + 1, self.columns - self.first))
        start = 0
        for block, coupling in zip(blocks, self.couplings, strict=True):
            w = block.shape[0]
            below = coupling if start + w < band.shape[1] else coupling[:0]
            stacked = np.vstack([block, below])
            for j in range(w):
                column = stacked[j : w + j + 1, j]
                band[: column.size, start + j] = column
            start += w
        return band

    def ritz_values(self, correction: FloatArray | None = None) -> FloatArray:
        """Return the eigenvalues of T (its last block corrected), descending; O(m² b)."""
        values = eigvals_banded(
            self.band(correction), lower=True, overwrite_a_band=True, check_finite=False
        )
        return np.asarray(values[::-1], dtype=np.float64)

    def trace(self) -> float:
        """Return the trace of T."""
        return float(sum(np.trace(block) for block in self.blocks))

    def _gaussian(self, count: int) -> FloatArray:
        free = self.operator.n_samples - self.columns
        return self.rng.standard_normal((self.operator.n_samples, min(count, free)))

    def _orthonormal(
        self, block: FloatArray, floor: float, *, since: int = 0, beside: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return V, R with block = V R + (what Q spans) + (what is below `floor`).

        The first pass starts at column `since`: the block is known to be orthogonal, up to
        rounding, to those before.
        """
        self._project(block, since, beside)
        basis, restored = _factors(block, floor, self.operator.n_samples - self.columns)
        # The second pass comes after the normalisation, which magnifies what the first left.
        # Another one follows where that was much (Kahan: twice is enough, if the second is tame).
        scaling = np.eye(basis.shape[1])
        for attempt in range(4):
            if attempt:
                basis = product(basis, scaling)
            self._project(basis, 0, beside)
            squares, axes = np.linalg.eigh(inner(basis, basis))
            # A direction that lies in Q after all was rounding, scaled up: drop it as well.
            kept = squares > 0.01
            lengths, axes = np.sqrt(squares[kept]), axes[:, kept]
            scaling = axes / lengths
            restored = (lengths[:, None] * axes.T) @ restored
            if np.all(squares > 0.5):
                break
        # Turned so that R is upper triangular: T has bandwidth b.
        turn, triangular = np.linalg.qr(restored)
        return product(basis, scaling @ turn), triangular

    def _project(self, block: FloatArray, since: int, beside: FloatArray | None) -> None:
        """Project a block, in place, off the columns of Q from `since` on (and `beside`)."""
        if self._rounded is not None and since == 0:
            rounded = self._rounded[:, : self.columns]
            overlap = inner(rounded, block.astype(np.float32))
            block -= product(rounded, overlap, np.empty(block.shape, np.float32, order="F"))
        else:
            basis = self.buffer[:, since : self.columns]
            block -= product(basis, inner(basis, block))
        if beside is not None:
            block -= beside @ (beside.T @ block)


def _factors(block: FloatArray, floor: float, most: int) -> tuple[FloatArray, FloatArray]:
    """Return V, R with block = V R + (what is below `floor`), V of at most `most` columns.

    V is orthonormal to 1e-8 at least; the caller orthogonalises it again.
    """
    squares, axes = np.linalg.eigh(inner(block, block))
    if squares[0] > max(1e-8 * squares[-1], floor**2) and squares.size <= most:
        lengths = np.sqrt(squares)  # four times as fast as a QR decomposition, on one thread
        return product(block, axes / lengths), lengths[:, None] * axes.T
    basis, factor, order = qr(block, mode="economic", pivoting=True, check_finite=False)
    rank = min(int(np.count_nonzero(np.abs(np.diagonal(factor)) > floor)), most)
    restored = np.empty((rank, block.shape[1]))
    restored[:, order] = factor[:rank]
    return np.asfortranarray(basis[:, :rank]), restored


def complement_norm(
    lanczos: BlockLanczos, goal: float | None, rng: Generator
) -> tuple[float, float, int]:
    r"""Bound the largest eigenvalue of C, the part of W outside of a basis, from both sides.

    C is (I - QQᵀ) W (I - QQᵀ) on its own space. A fresh Gaussian block Ω of p columns starts k
    steps of block Lanczos on C, which give H and ‖q(C)Ω‖ = ‖q(H)E₁R₀‖ for every polynomial q
    of degree below k. The largest Ritz value is the lower end. For the upper end let v be a unit
    eigenvector of λ = λ_max(C), fixed before Ω was drawn, so that ‖vᵀΩ‖² ~ χ²_p. If |q| is at
    least 1 from x onwards and λ ≥ x, then

    .. math:: \|v^T \Omega\| \le |q(\lambda)| \, \|v^T \Omega\| = \|v^T q(C) \Omega\|
              \le \|q(C) \Omega\|_2 ,

    so ‖q(C)Ω‖₂² < s proves λ < x except in the event ‖vᵀΩ‖² < s, of probability 1e-6. This
    one event covers every x, q and k that are tried. It is the bound of Kuczynski and Wozniakowski
    (1992) for the spectrum at hand in place of the worst one.

    Costs at most `PROBE_STEPS` products with blocks of `PROBE_WIDTH`; stops as soon as it is
    known on which side of `goal` (if any) the eigenvalue lies. The columns use the free part of
    the buffer. Returns lower and upper bound, without rounding, and the number of columns.
    """
    probe = BlockLanczos(lanczos.operator, lanczos.buffer, PROBE_WIDTH, rng, deflated=lanczos)
    # The χ² quantile; importing scipy.stats for it takes half a second. A solve makes a few
    # probes, so all of them together fail with a probability below 1e-5.
    least = 2.0 * float(gammaincinv(probe.start.shape[1] / 2, 1e-6))
    lower, upper = -np.inf, np.inf
    for step in range(1, PROBE_STEPS + 1):
        if not probe.has_room:
            break
        probe.expand()
        if probe.exhausted:
            lower = upper = float(probe.ritz_values()[0])
        elif step >= 3:
            lower, bound = _enclosure(probe, least)
            upper = min(upper, bound)
        if probe.exhausted or (goal is not None and (upper <= goal or lower >= goal)):
            break
    return lower, upper, probe.columns - probe.first


def _enclosure(probe: BlockLanczos, least: float) -> tuple[float, float]:
    """Return the largest Ritz value and the smallest x of a grid whose polynomial proves x."""
    # The eigenvalues of H, ascending, and what Ω has along each eigenvector, (m, p).
    nodes, vectors = eig_banded(probe.band(), lower=True, check_finite=False)
    components = vectors[: probe.start.shape[0]].T @ probe.start
    mass = np.sqrt((components**2).sum(axis=1))
    seen = mass > 0
    nodes, rows, mass = nodes[seen], components[seen] / mass[seen, None], mass[seen]
    top = float(nodes[-1])
    polynomials, alpha, beta = _jacobi(nodes, mass, len(probe.blocks))
    if alpha.size < len(probe.blocks):
        # A polynomial vanishes on all that Ω reaches: nothing above the largest node is left.
        return top, top
    spread = max(top - float(nodes[0]), EPS * abs(top), np.finfo(np.float64).tiny)

    def proves(offset: float) -> bool:
        at = _recurrence(top + offset, alpha, beta)
        damped = (polynomials @ at / (at @ at))[:, None] * rows
        return bool(np.linalg.eigvalsh(damped.T @ damped)[-1] < least)

    offsets = spread * 1e-3 * 1.25 ** np.arange(90)
    found = bisect_left(offsets, True, key=proves)
    return top, (top + float(offsets[found]) if found < offsets.size else float("inf"))


def _jacobi(
    nodes: FloatArray, mass: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return orthonormal polynomials of a discrete measure by Lanczos on its nodes.

    The polynomials come as values times `mass` at the nodes, (m, count), with the coefficients
    of their three-term recurrence; fewer than `count` where the measure has fewer nodes.
    """
    basis = np.empty((nodes.size, count))
    alpha, beta = np.empty(count), np.empty(count)
    vector, size = mass, float(np.linalg.norm(mass))
    smallest = EPS * float(np.abs(nodes).max())
    for j in range(count):
        beta[j] = size
        basis[:, j] = vector / size
        vector = nodes * basis[:, j]
        alpha[j] = basis[:, j] @ vector
        for _ in range(2):
            vector = vector - basis[:, : j + 1] @ (basis[:, : j + 1].T @ vector)
        size = float(np.linalg.norm(vector))
        if size <= smallest and j + 1 < count:
            return basis[:, : j + 1], alpha[: j + 1], beta[: j + 1]
    return basis, alpha, beta


def _recurrence(x: float, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Return the orthonormal polynomials at x: their kernel at x is the q that decays fastest.

    q(t) = Σ pⱼ(x) pⱼ(t) / Σ pⱼ(x)² is 1 at x and smallest in the mean over the measure. It is
    orthogonal to lower degrees in the measure (x - t)dμ, so its zeros lie among the nodes, and
    beyond x it only grows.
    """
    values = np.empty(alpha.size)
    before, values[0] = 0.0, 1.0 / beta[0]
    for j in range(1, alpha.size):
        back = beta[j - 1] * before
        before = values[j - 1]
        values[j] = ((x - alpha[j - 1]) * before - back) / beta[j]
    return values
