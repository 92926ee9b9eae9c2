"""What the measurements of the layer experiment say: claims, the table and the figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import figures
from .._check import FloatArray
from ..matching import Match
from .base import Claim, markdown_table
from .layers import BLOCKS, DIFFERENT, IDENTICAL, LENET, RESNET_STAGES, STATISTICS, STEPS, Layers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The table of the paper, in percent: identical inputs, different inputs.
PAPER = {
    "les": ("96", "95.8"),
    "les-equal": ("–", "–"),
    "cka": ("97.3", "–"),
    "imd": ("85.2", "81"),
}
LABELS = {"les": "LES", "les-equal": "LES, one N", "cka": "CKA", "imd": "IMD"}
_COLOURS = {"les": 0, "les-equal": 5, "cka": 2, "imd": 1}  # positions in figures.COLOURS
_WORDS = {"act": "stem", "linear": "logits"}
_NETWORKS = {"tiny10": "Tiny10", "allcnn": "All-CNN-C"}
_SOURCE = "Appendix E"


def matrices(table: pd.DataFrame, method: str, names: Sequence[Any]) -> list[FloatArray]:
    """Return the matrix of distances of each trial, (n, n)."""
    chosen = table[(table["method"] == method) & table["pair"].isin(_pairs(names))]
    shape = (len(names), len(names))
    return [
        rows.set_index("pair").loc[_pairs(names), "value"].to_numpy().reshape(shape)
        for _, rows in chosen.groupby("trial")
    ]


def _pairs(names: Sequence[Any]) -> list[str]:
    return [f"{a}:{b}" for a in names for b in names]


def log_margins(table: pd.DataFrame, method: str) -> FloatArray:
    """Return log α of every pair of LeNets and every shift from 1 on, (trials, 4)."""
    found = [
        Match(LENET, LENET, distances, method).margins[1:]
        for distances in matrices(table, method, LENET)
    ]
    return np.log(found)


def claims_of(table: pd.DataFrame) -> list[Claim]:
    """Return the claims about the methods in the table."""
    methods = set(table["method"])
    claims: list[Claim] = []
    for name in ("les", "imd"):
        if f"lenet-{name}" in methods:
            claims += _margin_claims(log_margins(table, f"lenet-{name}"), name)
    for network in _NETWORKS:
        claims += _accuracy_claims(table, network)
    if "resnet-les" in methods:
        claims += _resnet_claims(table)
    if "training-les" in methods:
        claims.append(_training_claim(table))
    return claims


def _margin_claims(margins: FloatArray, name: str) -> list[Claim]:
    """Return the claims on the mean over pairs of seeds, with the number of pairs."""
    n, mean = len(margins), margins.mean(axis=0)
    spread = margins.std(axis=0, ddof=1) if n > 1 else np.zeros_like(mean)
    curve = ", ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True))
    label, measured = LABELS[name], f"log α at δ = 1…4: {curve} over {n} pairs of seeds"

    def claim(expected: str, holds: Any, of_mean: bool) -> Claim:
        count = f"{measured}; in {int(np.sum(holds))} of {n} pairs"
        return Claim(_SOURCE, f"{label}: {expected}", count, bool(of_mean))

    rising = (np.diff(margins, axis=1) > 0).all(axis=1), bool((np.diff(mean) > 0).all())
    if name == "imd":
        below = margins[:, 0] < 0, mean[0] < 0
        return [
            claim("the log margin factor is below 0 at δ = ±1", *below),
            claim("the log margin factor increases from δ = ±1 on", *rising),
        ]
    above = (margins > 0).all(axis=1), bool((mean > 0).all())
    return [
        claim("the log margin factor is above 0 for all shifts", *above),
        claim("the log margin factor increases with the shift", *rising),
    ]


def accuracies(table: pd.DataFrame, network: str, distance: str, inputs: float) -> FloatArray:
    """Return the accuracy in percent of each ordered pair of networks."""
    chosen = table[(table["method"] == f"{network}-{distance}")]
    return 100.0 * chosen[chosen["different_inputs"] == inputs]["value"].to_numpy()


def _accuracy_claims(table: pd.DataFrame, network: str) -> list[Claim]:
    means = {
        (name, inputs): accuracies(table, network, name, inputs).mean()
        for name in PAPER
        for inputs in (IDENTICAL, DIFFERENT)
        if accuracies(table, network, name, inputs).size
    }
    words, claims = {IDENTICAL: "identical inputs", DIFFERENT: "different inputs"}, []
    label = _NETWORKS[network]
    for inputs, text in words.items():
        if ("les", inputs) in means and ("imd", inputs) in means:
            les, imd = means["les", inputs], means["imd", inputs]
            expected = f"{label}, {text}: LES matches more layers than IMD"
            claims.append(Claim(_SOURCE, expected, f"{les:.1f} % and {imd:.1f} %", les > imd))
    if ("les-equal", DIFFERENT) in means and ("les", DIFFERENT) in means:
        equal, les = means["les-equal", DIFFERENT], means["les", DIFFERENT]
        expected = f"{label}, different inputs: images of one N are matched at least as well"
        claims.append(
            Claim("this project", expected, f"{equal:.1f} % and {les:.1f} %", equal >= les)
        )
    if ("les", DIFFERENT) in means and ("cka", IDENTICAL) in means:
        les, cka = means["les", DIFFERENT], means["cka", IDENTICAL]
        expected = f"{label}: LES on different inputs is close to CKA on identical ones (3 points)"
        claims.append(Claim(_SOURCE, expected, f"{les:.1f} % and {cka:.1f} %", les >= cka - 3.0))
    return claims


def _resnet_claims(table: pd.DataFrame) -> list[Claim]:
    (distances,) = matrices(table, "resnet-les", RESNET_STAGES)
    n_right = Match(RESNET_STAGES, RESNET_STAGES, distances, "les", np.arange(5)).n_correct
    expected = "ResNet-20 and ResNet-32 on different images: each stage is nearest to its own"
    claims = [Claim("this project", expected, f"{n_right} of 5 stages", n_right == 5)]
    rows = table[table["method"] == "resnet-les"].set_index("pair")["value"]
    shares = ", ".join(f"{100 * rows[name]:.0f} % of {name}" for name in BLOCKS)
    expected = "the nearest block of the other ResNet is of the same stage"
    return [*claims, Claim("this project", expected, shares, None)]


def _training_claim(table: pd.DataFrame) -> Claim:
    rows = table[table["method"] == "training-les"]
    correlation, p_value = (rows[rows["pair"] == name]["value"].to_numpy() for name in STATISTICS)
    expected = f"checkpoints of LeNet at steps {', '.join(map(str, STEPS))} order themselves: LES "
    expected += "of `fc2` correlates with the number of doublings between them (Mantel p ≤ 0.05)"
    measured = f"Spearman {correlation.mean():.2f} (from {correlation.min():.2f} to "
    measured += f"{correlation.max():.2f} over {len(correlation)} seeds), p ≤ {p_value.max():.2g}"
    return Claim("this project", expected, measured, bool((p_value <= 0.05).all()))


def accuracy_note(table: pd.DataFrame, experiment: Layers) -> list[str]:
    """Return the table of the paper beside ours."""
    rows = []
    for network, label in _NETWORKS.items():
        for name, paper in PAPER.items():
            cells = []
            for inputs in (IDENTICAL, DIFFERENT):
                found = accuracies(table, network, name, inputs)
                text = f"{found.mean():.1f} ± {found.std(ddof=1):.1f} %" if found.size else "–"
                cells.append(text)
            if cells != ["–", "–"]:
                rows.append(
                    [
                        label,
                        LABELS[name],
                        *cells,
                        *(f"{cell} %" if cell != "–" else cell for cell in paper),
                    ]
                )
    if not rows:
        return []
    head = ["networks", "distance", "identical", "different", "paper, identical", "different"]
    n = experiment.n_images
    text = (
        "Layer position accuracy, mean ± standard deviation over ordered pairs of networks, from "
        f"N = {n} images, or different images, between {int(0.7 * n)} and {n} for each network; "
        f"`one N` is {int(0.7 * n)} for each, which is free of the bias of different sizes. The "
        "paper has 10 All-CNN-C of 10 layers, N = 10,000 or between 7000 and 10,000."
    )
    if any(row[0] == _NETWORKS["tiny10"] for row in rows):
        text += f" Tiny10: {experiment.n_networks} networks of 9 layers."
    if any(row[0] == _NETWORKS["allcnn"] for row in rows):
        text += (
            f" All-CNN-C here: {experiment.n_seeds} seeds, width {experiment.width} (the paper's "
            f"is 96), dropout {experiment.dropout:g} (0.5), {experiment.all_cnn_epochs} epochs"
        )
        for images, name in (("training", "accuracy-training"), ("test", "accuracy")):
            right = accuracies(table, "allcnn", name, IDENTICAL)
            if right.size:
                text += f", {right.min():.1f} to {right.max():.1f} % of {images} images right"
        text += "."
    return [text, markdown_table(head, rows)]


def draw_layers(table: pd.DataFrame) -> Figure:
    """Return margins, accuracies, and matrices of distances, one panel each."""
    methods = set(table["method"])
    lenet = [name for name in ("les", "imd") if f"lenet-{name}" in methods]
    networks = [n for n in _NETWORKS if any(m.startswith(n) for m in methods)]
    panels: list[Any] = [lambda axes: _draw_margins(axes, table, lenet)] if lenet else []
    panels += [lambda axes, n=network: _draw_accuracies(axes, table, n) for network in networks]
    for method, names, title in (
        ("lenet-les", LENET, "LES, two LeNets"),
        ("resnet-les", RESNET_STAGES, "LES, ResNet-20 (rows) and 32"),
        ("training-les", STEPS, "LES of fc2, steps of training"),
    ):
        if method in methods:
            mean = np.mean(matrices(table, method, names), axis=0)
            panels.append(lambda axes, m=mean, n=names, t=title: _draw_matrix(axes, m, n, t))
    figure, axes = figures.panels(len(panels), columns=3)
    for panel, draw in zip(axes, panels, strict=True):
        draw(panel)
    return figure


def _draw_margins(axes: Axes, table: pd.DataFrame, names: Sequence[str]) -> None:
    axes.axhline(0.0, color="#555555", linestyle=":", linewidth=1.0)
    for i, name in enumerate(names):
        margins = log_margins(table, f"lenet-{name}")
        margins = np.hstack([margins[:, ::-1], np.zeros((len(margins), 1)), margins])
        mean, shifts = margins.mean(axis=0), np.arange(-4.0, 5.0)
        look = {
            "color": figures.COLOURS[_COLOURS[name]],
            "marker": figures.MARKERS[i],
            "label": LABELS[name],
        }
        low, high = margins.min(axis=0), margins.max(axis=0)
        figures.banded_line(axes, shifts, mean, low, high, markersize=4, **look)
    axes.set(xlabel="shift of layers δ", ylabel="log margin factor", xticks=range(-4, 5))
    axes.set_title("LeNets of two seeds", fontsize=11)
    axes.legend()


def _draw_accuracies(axes: Axes, table: pd.DataFrame, network: str) -> None:
    labels, place = [], 0
    for name, paper in PAPER.items():
        for inputs, known in zip((IDENTICAL, DIFFERENT), paper, strict=True):
            found = accuracies(table, network, name, inputs)
            if not found.size:
                continue
            shade = 1.0 if inputs == IDENTICAL else 0.5
            colour = figures.COLOURS[_COLOURS[name]]
            axes.bar(place, found.mean(), color=colour, alpha=shade, width=0.8)
            if known != "–":
                axes.plot([place - 0.4, place + 0.4], [float(known)] * 2, color="black", lw=1.6)
            word = "identical" if inputs == IDENTICAL else "different"
            labels.append(f"{LABELS[name].replace(', ', chr(10))}\n{word}")
            place += 1
    axes.set_xticks(range(place), labels, fontsize=7)
    axes.set(ylabel="layers matched, %", ylim=(0, 102))
    axes.set_title(f"{_NETWORKS[network]} (lines: the paper)", fontsize=11)


def _draw_matrix(axes: Axes, values: FloatArray, names: Sequence[Any], title: str) -> None:
    image = axes.imshow(values, cmap="viridis")
    labels = [_WORDS.get(name, str(name)) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(names)), labels, fontsize=8)
    if values.diagonal().max() > 0:  # the rows are not the columns
        axes.plot(values.argmin(axis=1), range(len(names)), "o", color=figures.COLOURS[1], ms=5)
    axes.set_title(title, fontsize=11)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
