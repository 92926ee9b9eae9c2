"""Whether dissimilarity predicts accuracy: correlations, the paper's tables beside ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..embedding import AGGREGATORS

if TYPE_CHECKING:
    import pandas as pd

LABELS = {"fc100": "FC100", "cifar-fs": "CIFAR-FS", "omniglot": "Omniglot"}
EMBEDDERS = {
    "resnet20": "ResNet-20 trained on CIFAR-10, whose ten classes are the seen ones",
    "conv4": "a Conv-4 trained here on the training classes of each benchmark",
    "resnet12": "a ResNet-12 trained here on the training classes of each benchmark",
}
OF_THE_PAPER = ("fc100", "cifar-fs")  # benchmarks
_COLUMNS = [(name, shot) for name in OF_THE_PAPER for shot in (1, 5, 10)]
# Tables [table:meta-mean], [table:supp:corr-min-metalearn] and [table:supp:corr-max-metalearn].
_PAPER = """
mean les -.934±.034 -.945±.032 -.935±.032 -.671±.128 -.698±.155 -.657±.175
mean imd -.184±.250 -.303±.225 -.210±.235 -.151±.225 -.015±.220 -.032±.281
mean wasserstein .739±.102 .605±.126 .579±.133 .453±.170 .269±.214 .180±.231
mean gromov-wasserstein -.919±.034 -.921±.046 -.914±.045 -.677±.126 -.672±.167 -.582±.171
mean geometry-score -.735±.101 -.570±.154 -.581±.218 -.384±.201 -.034±.258 -.012±.281
min les -.913±.038 -.922±.042 -.913±.046 -.588±.150 -.676±.131 -.597±.203
min imd -.356±.258 -.399±.223 -.359±.203 -.116±.196 -.011±.221 -.044±.272
min wasserstein .314±.264 .099±.253 .077±.267 .243±.205 -.013±.283 -.031±.277
min gromov-wasserstein -.898±.036 -.869±.090 -.831±.166 -.525±.309 -.506±.272 -.388±.284
min geometry-score -.744±.080 -.546±.241 -.555±.245 -.306±.248 -.094±.230 -.051±.257
max les -.938±.032 -.942±.029 -.931±.029 -.663±.167 -.690±.170 -.644±.194
max imd -.119±.269 -.298±.223 -.178±.284 -.129±.194 -.026±.247 -.028±.236
max wasserstein .754±.096 .634±.124 .621±.146 .432±.184 .283±.231 .184±.220
max gromov-wasserstein -.924±.034 -.915±.052 -.908±.052 -.679±.146 -.660±.166 -.610±.171
max geometry-score -.705±.100 -.517±.170 -.517±.175 -.407±.207 -.073±.252 -.005±.281
accuracy - 38.19±0.48 54.45±0.49 60.52±0.48 70.79±0.69 83.98±0.44 87.11±0.40
seconds les 23.3±27.4 20.4±11.8 19.2±11.3 26.2±27.2 20.8±11.6 18.8±10.6
seconds imd 16.6±11.1 16.1±11.5 24.1±28.6 18.4±11.3 22.9±27.7 16.7±9.9
seconds wasserstein 29.2±10.7 31.0±11.1 40.3±41.3 31.0±10.3 39.3±41.6 28.2±10.3
seconds gromov-wasserstein 1569±480 1592±475 1716±436 1459±439 1540±449 1579±454
seconds geometry-score 96.2±7.7 97.2±7.9 99.2±6.5 99.8±7.4 98.3±7.5 97.6±8.6
"""


def _paper() -> dict[tuple[str, str, str, int], tuple[float, float]]:
    """Return the mean and deviation of every cell, by table, method, benchmark and shot."""
    cells = {}
    for line in _PAPER.strip().splitlines():
        kind, method, *values = line.split()
        for column, value in zip(_COLUMNS, values, strict=True):
            mean, std = map(float, value.split("±"))
            cells[kind, method, *column] = mean, std
    return cells


PAPER = _paper()


def tasks_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per new task and distance, its accuracies in columns such as `5-shot`."""
    parts = table["pair"].str.split(" ", expand=True).reindex(columns=range(3))
    rows = table.assign(benchmark=parts[0], task=parts[1], shot=parts[2])
    key = ["trial", "benchmark", "unseen", "task"]
    is_accuracy = rows["method"] == "accuracy"
    accuracies = rows[is_accuracy].pivot(index=key, columns="shot", values="mean")
    distances = rows[rows["shot"].isna() & rows["task"].str.isdigit().eq(True)]
    return distances.join(accuracies, on=key)


def correlations(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return Pearson's r of every trial: benchmark, shot, method, aggregate, trial, r."""
    import pandas as pd

    shots = [name for name in tasks.columns if str(name).endswith("-shot")]
    rows = []
    for (benchmark, method, trial), group in tasks.groupby(
        ["benchmark", "method", "trial"], sort=False
    ):
        for shot in shots:
            for how in AGGREGATORS:
                value = pearson(group[how], group[shot])
                rows.append((benchmark, int(shot.split("-")[0]), method, how, trial, value))
    return pd.DataFrame(rows, columns=["benchmark", "shot", "method", "aggregate", "trial", "r"])


def pearson(x: Any, y: Any) -> float:
    """Return Pearson's correlation, NaN where a side is constant."""
    a, b = (np.asarray(v, dtype=np.float64) for v in (x, y))
    return (
        math.nan if len(a) < 2 or not (np.ptp(a) and np.ptp(b)) else float(np.corrcoef(a, b)[0, 1])
    )


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation over the trials of every cell, and the paper's."""
    key = ["benchmark", "shot", "method", "aggregate"]
    found = correlations(tasks_of(table)).groupby(key, sort=False)["r"]
    frame = found.agg(["mean", "std", "count"]).reset_index()
    paper = [
        PAPER.get((how, method, name, shot), (math.nan, math.nan))
        for name, shot, method, how in frame[key].itertuples(index=False)
    ]
    frame["paper_mean"], frame["paper_std"] = zip(*paper, strict=True)
    return frame


def within(tasks: pd.DataFrame, shot: int) -> pd.DataFrame:
    """Return the correlation within a fixed share of unseen classes: benchmark, method, r, n.

    Deviations from the mean of the tasks of one trial and one share, so that the mixture itself
    explains nothing.
    """
    import pandas as pd

    rows = []
    for (benchmark, method), group in tasks.groupby(["benchmark", "method"], sort=False):
        columns = group[["mean", f"{shot}-shot"]]
        means = columns.groupby([group["trial"], group["unseen"]]).transform("mean")
        rest = columns - means
        shares = {
            float(share): pearson(part["mean"], part[f"{shot}-shot"])
            for share, part in rest.groupby(group["unseen"])
        }
        rows.append((benchmark, method, pearson(rest["mean"], rest[f"{shot}-shot"]), shares))
    return pd.DataFrame(rows, columns=["benchmark", "method", "r", "shares"])


def threshold_transfer(
    tasks: pd.DataFrame, method: str, shot: int, chosen_on: str, used_on: str
) -> dict[str, float]:
    """Return precision and recall on one benchmark of a threshold chosen on another.

    A task is hard if its accuracy is below the median of all tasks of the benchmark `chosen_on`;
    the threshold on dissimilarity is the one of largest F1 there.
    """
    those = tasks[tasks["method"] == method]
    there, here = (those[those["benchmark"] == name] for name in (chosen_on, used_on))
    level = float(there[f"{shot}-shot"].median())
    best = max(there["mean"], key=lambda limit: _scores(there, shot, level, limit)["f1"])
    return {"level": level, "threshold": float(best), **_scores(here, shot, level, best)}


def _scores(tasks: pd.DataFrame, shot: int, level: float, limit: float) -> dict[str, float]:
    hard, flagged = tasks[f"{shot}-shot"] < level, tasks["mean"] >= limit
    both, n_flagged, n_hard = (int(v.sum()) for v in (hard & flagged, flagged, hard))
    return {
        "precision": both / n_flagged if n_flagged else math.nan,
        "recall": both / n_hard if n_hard else math.nan,
        "f1": 2 * both / (n_flagged + n_hard) if n_flagged + n_hard else 0.0,
        "hard": n_hard / len(tasks),
    }
