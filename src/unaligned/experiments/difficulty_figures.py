"""Figures of task difficulty: accuracy against dissimilarity, and tasks in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy.spatial.distance import cdist

from .. import figures
from ..embedding import embed
from .difficulty import LABELS, pearson, tasks_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .tasks import Tasks


def scatter(experiment: Tasks, table: pd.DataFrame) -> Figure:
    """Return the accuracy of the new tasks of the first trial against their mean dissimilarity."""
    tasks = tasks_of(table)
    tasks = tasks[tasks["trial"] == tasks["trial"].min()]
    shot = f"{experiment.shots[len(experiment.shots) // 2]}-shot"
    methods = [m for m in experiment.panels if m.distance in set(tasks["method"])]
    figure, axes = figures.panels(len(methods), columns=3)
    for panel, method in zip(axes, methods, strict=True):
        texts = []
        for i, name in enumerate(experiment.benchmarks):
            rows = tasks[(tasks["method"] == method.distance) & (tasks["benchmark"] == name)]
            shades = panel.scatter(
                rows["mean"],
                rows[shot],
                c=rows["unseen"],
                marker=figures.MARKERS[i],
                cmap="viridis_r",
                vmin=0,
                vmax=1,
                edgecolors="black",
                linewidths=0.4,
                label=LABELS[name],
            )
            texts.append(f"{LABELS[name]} r = {pearson(rows['mean'], rows[shot]):.2f}")
        panel.set_title(f"{method.label}\n{', '.join(texts)}", fontsize=10)
        panel.set_xlabel("mean distance to the reference tasks")
        panel.set_ylabel(f"{shot} accuracy")
    figure.colorbar(shades, ax=axes, label="share of unseen classes", shrink=0.6)
    if len(experiment.benchmarks) > 1:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def planes(experiment: Tasks, *, per_class: int = 60) -> Figure:
    """Return metric scalings of a reference task and two new tasks (fig:supp:mds-metalearn).

    The first `per_class` images of each class are shown; scaling takes seconds.
    """
    shown = experiment.shown()
    data = experiment.benchmark(experiment.benchmarks[0])
    figure, axes = figures.panels(len(shown), columns=3, width=4.2, height=3.9)
    for panel, (place, task) in zip(axes, shown.items(), strict=True):
        points = data.points(task.classes, per_class)
        x, y = embed(cdist(points, points), "metric-mds", rng=experiment.seed).T
        n = len(points) // len(task.classes)
        for i, name in enumerate(task.classes):
            chosen = slice(i * n, (i + 1) * n)
            look = {"color": figures.COLOURS[i % len(figures.COLOURS)], "s": 9}
            panel.scatter(x[chosen], y[chosen], label=name.replace("_", " "), **look)
        title = f"{'a reference task' if place == 'left' else 'a new task'}, {task.shot}-shot "
        title += f"accuracy {task.accuracy:.1%}"
        if place != "left":
            title += f"\nfrom the left: LES {task.distances['les']:.3g}, "
            title += f"IMD {task.distances['imd']:.3g}"
        panel.set_title(title, fontsize=10)
        panel.set(xticks=[], yticks=[])
        if len(task.classes) <= len(figures.COLOURS):
            panel.legend(fontsize=7, markerscale=1.5, loc="best")
        else:  # characters, of one alphabet or two
            groups = dict.fromkeys(name.partition("/")[0] for name in task.classes)
            words = ", ".join(groups).replace("_", " ")
            panel.set_xlabel(f"{len(task.classes)} characters: {words}")
    name = experiment.benchmarks[0]
    embedder = "conv4" if name == "omniglot" else experiment.embedder
    figure.suptitle(f"Embeddings of tasks of {LABELS[name]}, {embedder} (Appendix D)")
    return figure
