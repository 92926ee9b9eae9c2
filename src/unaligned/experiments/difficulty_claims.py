"""The paper's claims about task difficulty as verdicts, its tables beside ours, and more."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING

from ..embedding import AGGREGATORS
from ..errors import listed as listed_words
from .base import Claim, markdown_table
from .difficulty import (
    EMBEDDERS,
    LABELS,
    OF_THE_PAPER,
    PAPER,
    cells,
    pearson,
    tasks_of,
    threshold_transfer,
    within,
)

if TYPE_CHECKING:
    import pandas as pd

    from .tasks import Tasks
    from .tori import Method

_PEERS = ("imd", "geometry-score", "wasserstein")
_COMPARABLE = 0.1  # difference of two correlations; the paper's GW differs from LES by up to 0.08


class _Found:
    """The correlations and times of one run, by benchmark, shot, method and aggregator."""

    def __init__(self, experiment: Tasks, table: pd.DataFrame) -> None:
        self.experiment, self.table = experiment, table
        self.tasks = tasks_of(table)
        found = cells(table)[["benchmark", "shot", "method", "aggregate", "mean", "std"]]
        self._cells = {tuple(row[:4]): row[4:] for row in found.itertuples(index=False)}
        self.methods = [m for m in experiment.panels if m.distance in set(self.tasks["method"])]
        self.names = [m.distance for m in self.methods]
        self.labels = {m.distance: m.label for m in experiment.panels}
        self.known = [name for name in experiment.benchmarks if name in OF_THE_PAPER]
        # The paper's columns.
        self.settings = [(name, shot) for name in self.known for shot in experiment.shots]
        self.shot = experiment.shots[len(experiment.shots) // 2]

    def r(self, benchmark: str, shot: int, method: str, how: str = "mean") -> float:
        return float(self._cells[benchmark, shot, method, how][0])

    def text(self, benchmark: str, shot: int, method: str, how: str = "mean") -> str:
        mean, std = self._cells[benchmark, shot, method, how]
        return _number(mean, std, 3)

    def seconds(self, method: Method) -> tuple[float, float]:
        """Return mean and deviation of the time of a new task with all images, or NaN."""
        name = f"{method.distance}-time" if method.n_samples else method.distance
        rows = self.table[self.table["method"] == name]
        large = rows["pair"].str.startswith(tuple(self.known or LABELS))  # not N = 400 of Omniglot
        times = rows["seconds"] if method.n_samples else rows[large]["seconds"]
        pairs = self.experiment.n_references if method.n_samples else 1  # one pair was timed
        return pairs * float(times.mean()), pairs * float(times.std())


def _number(mean: float, std: float, digits: int) -> str:
    if math.isnan(mean):
        return "–"
    return f"{mean:.{digits}f}" + ("" if math.isnan(std) else f" ± {std:.{digits}f}")


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.0%}"


def _column(benchmark: str, shot: int) -> str:
    return f"{LABELS[benchmark]} {shot}-shot"


def claims(experiment: Tasks, table: pd.DataFrame) -> list[Claim]:
    """Return the paper's claims, and answers to questions beyond it."""
    found = _Found(experiment, table)
    listed = _paper_claims(found) if found.known else []
    for name in experiment.benchmarks:
        if name not in found.known:
            listed.append(_other_claim(found, name))
    return [*listed, *_mixture_claims(found), *_threshold_claims(found)]


def _paper_claims(found: _Found) -> list[Claim]:
    listed = [_seen_claim(found), *_test_claims(found)]
    if "les" in found.names:
        listed += [*_level_claims(found), *_better_claims(found), *_order_claims(found)]
        listed += [_aggregator_claim(found)]
    if "gromov-wasserstein" in found.names and "les" in found.names:
        listed.append(_transport_claim(found))
    listed += _time_claims(found)
    if "wasserstein" in found.names:
        listed.append(_sign_claim(found))
    has_figure = "figure" in set(found.table["method"])
    if has_figure and found.experiment.benchmarks[0] in found.known:
        listed.append(_figure_claim(found))
    return listed


def _mean_accuracies(found: _Found, unseen: float) -> dict[tuple[str, int], float]:
    """Return the mean accuracy of tasks with this share of unseen classes, by column."""
    rows = found.table[(found.table["method"] == "accuracy") & (found.table["unseen"] == unseen)]
    means = rows.groupby(rows["pair"].str.replace(r" \d+ ", " ", regex=True))["mean"].mean()
    return {(b, s): float(means[f"{b} {s}-shot"]) for b, s in _all_columns(found)}


def _seen_claim(found: _Found) -> Claim:
    means = _mean_accuracies(found, 0.0)
    measured = ", ".join(f"{_column(*column)} {means[column]:.1%}" for column in found.settings)
    expected = "accuracy on tasks of seen classes is above 90 % in all settings"
    passed = all(means[column] > 0.9 for column in found.settings)
    return Claim("Section 5.3", expected, measured, passed)


def _other_claim(found: _Found, name: str) -> Claim:
    """Return what the distances tell about a benchmark that the paper has not."""
    seen, unseen = (_mean_accuracies(found, share)[name, found.shot] for share in (0.0, 1.0))
    parts = [f"{found.labels[m]} {found.text(name, found.shot, m)}" for m in found.names]
    expected = (
        f"{LABELS[name]}, a second source of tasks: r of {found.shot}-shot accuracy and mean "
    )
    expected += "dissimilarity"
    measured = f"{', '.join(parts)}, where accuracy is {seen:.1%} on seen and {unseen:.1%} on "
    measured += "unseen classes"
    rows = found.table[found.table["method"] == "test-accuracy"].set_index("pair")["mean"]
    tests = [(f"{s}-shot", f"{name} {s}-shot") for s in found.experiment.shots]
    if all(pair in rows for _, pair in tests):
        found_there = ", ".join(f"{shot} {rows[pair]:.1%}" for shot, pair in tests)
        measured += f"; {found.experiment.n_test_tasks} random tasks of unseen ones: {found_there}"
    return Claim("this project", expected, measured, None)


def _test_claims(found: _Found) -> list[Claim]:
    rows = found.table[found.table["method"] == "test-accuracy"].set_index("pair")
    n, texts = found.experiment.n_test_tasks, []
    for column in found.settings:
        pair = f"{column[0]} {column[1]}-shot"
        if pair in rows.index and ("accuracy", "-", *column) in PAPER:
            mean, std = (100.0 * float(rows[name][pair]) for name in ("mean", "std"))
            paper = _number(*PAPER["accuracy", "-", *column], 1)
            ours = _number(mean, 1.96 * std / math.sqrt(n), 1)
            texts.append(f"{_column(*column)} {ours} % (paper {paper} %)")
    expected = "accuracy on random tasks of unseen classes, with the paper's ResNet-12"
    measured = (
        f"{', '.join(texts)}; ± is 1.96 standard errors of {n} tasks, and the paper's, which "
    )
    measured += "it calls a standard deviation, is too small for anything else"
    return [Claim("Table 1", expected, measured, None)] if texts else []


def _level_claims(found: _Found) -> list[Claim]:
    columns = [column for column in found.settings if column[0] == "fc100"]
    if not columns:
        return []
    measured = ", ".join(f"{s}-shot {found.text(b, s, 'les')}" for b, s in columns)
    passed = all(found.r(b, s, "les") <= -0.9 for b, s in columns)
    return [Claim("Table 1", "LES: r ≤ -0.9 on FC100, mean over references", measured, passed)]


def _better_claims(found: _Found) -> list[Claim]:
    """Return whether LES is better than each peer, by aggregator; no verdict without a peer."""
    peers, listed = [name for name in _PEERS if name in found.names], []
    if not peers:
        return []
    names = listed_words([found.labels[peer] for peer in peers])
    for how, source in (("mean", "Table 1"), ("min", "Appendix D"), ("max", "Appendix D")):
        worse = [
            f"{found.labels[peer]} {found.text(b, s, peer, how)} against LES "
            f"{found.text(b, s, 'les', how)} ({_column(b, s)})"
            for b, s in found.settings
            for peer in peers
            if not found.r(b, s, "les", how) < found.r(b, s, peer, how)
        ]
        n = len(found.settings) * len(peers)
        measured = f"in {n - len(worse)} of {n} comparisons" + "; not: " * bool(worse)
        measured += "; ".join(worse)
        expected = f"LES outperforms {names} in all settings ({how} over references)"
        passed = not worse if len(peers) == len(_PEERS) else None
        listed.append(Claim(source, expected, measured, passed))
    return listed


def _order_claims(found: _Found) -> list[Claim]:
    if not {"fc100", "cifar-fs"} <= set(found.experiment.benchmarks):
        return []
    shots, names = found.experiment.shots, [n for n in found.names if n != "les-corrected"]
    stronger = [
        f"{found.labels[name]} {shot}-shot {found.text('cifar-fs', shot, name)} against "
        f"{found.text('fc100', shot, name)}"
        for name in names
        for shot in shots
        if not abs(found.r("cifar-fs", shot, name)) < abs(found.r("fc100", shot, name))
    ]
    n, is_all = len(shots) * len(names), len(names) == len(found.experiment.panels) - 1
    measured = f"in {n - len(stronger)} of {n} cells" + "; not: " * bool(stronger)
    those = "all distances" if is_all else listed_words([found.labels[name] for name in names])
    expected = f"the correlation on CIFAR-FS is weaker than on FC100 for {those}"
    passed = not stronger if is_all else None
    return [Claim("Section 5.3", expected, measured + "; ".join(stronger), passed)]


def _aggregator_claim(found: _Found) -> Claim:
    spreads = {}
    for b, s in found.settings:
        values = [found.r(b, s, "les", how) for how in AGGREGATORS]
        spreads[_column(b, s)] = max(values) - min(values)
    worst = max(spreads, key=spreads.__getitem__)
    expected = (
        f"the choice of mean, min or max does not alter r of LES much (bar: {_COMPARABLE:g})"
    )
    measured = f"by at most {spreads[worst]:.3f} ({worst})"
    return Claim("Appendix D", expected, measured, spreads[worst] <= _COMPARABLE)


def _transport_claim(found: _Found) -> Claim:
    name = "gromov-wasserstein"
    gaps = {(b, s): found.r(b, s, name) - found.r(b, s, "les") for b, s in found.settings}
    worst = max(gaps, key=lambda column: abs(gaps[column]))
    text = f"r(GW) - r(LES) from {min(gaps.values()):+.3f} to {max(gaps.values()):+.3f}, "
    text += f"largest at {_column(*worst)}"
    expected = f"GW is comparable to LES (bar: r within {_COMPARABLE:g}, mean over references)"
    return Claim("Section 5.3", expected, text, abs(gaps[worst]) <= _COMPARABLE)


def _time_claims(found: _Found) -> list[Claim]:
    times = {m.distance: found.seconds(m)[0] for m in found.experiment.panels}
    slow, fast = times["gromov-wasserstein"], times["les"]
    expected = "GW is orders of magnitude slower (bar: 50 times LES)"
    if math.isnan(slow + fast):
        measured = "its time with all images was not measured"
        both = {"les", "gromov-wasserstein"} <= set(found.names)
        return [Claim("Section 5.3", expected, measured, None)] * both
    n = found.experiment.per_class * 5
    measured = f"{slow / fast:.0f} times: {slow:.4g} s against {fast:.3g} s of processor time per "
    measured += f"new task, N = {n}"
    return [Claim("Section 5.3", expected, measured, slow / fast >= 50.0)]


def _sign_claim(found: _Found) -> Claim:
    negative = [
        f"{found.text(b, s, 'wasserstein', how)} ({_column(b, s)}, {how})"
        for b, s in found.settings
        for how in ("mean", "max")
        if not found.r(b, s, "wasserstein", how) > 0
    ]
    n = 2 * len(found.settings)
    measured = f"positive in {n - len(negative)} of {n} cells" + "; not: " * bool(negative)
    expected = "OT has the wrong sign, r > 0, for mean and max over references"
    return Claim("Table 1", expected, measured + "; ".join(negative), not negative)


def _figure_claim(found: _Found) -> Claim:
    values = found.table[found.table["method"] == "figure"].set_index("pair")["mean"]
    les, imd = ((values[f"center {name}"], values[f"right {name}"]) for name in ("les", "imd"))
    expected = (
        "LES(left, center) = 188.6 is far above LES(left, right) = 3.5 (0.5 in the caption) "
    )
    expected += "and IMD has them the other way round, 3.5 and 12.6 (bar: LES tenfold, IMD below)"
    measured = f"LES {les[0]:.3g} and {les[1]:.3g}, IMD {imd[0]:.3g} and {imd[1]:.3g}"
    passed = bool(les[0] > 10 * les[1] and imd[0] < imd[1])
    return Claim("Appendix D, figure", expected, measured, passed)


def _mixture_claims(found: _Found) -> list[Claim]:
    """Return correlations within a fixed share of unseen classes."""
    shot, listed = found.shot, []
    rests = {(b, m): r for b, m, r, _ in within(found.tasks, shot).itertuples(index=False)}
    for name in found.experiment.benchmarks:
        one = found.tasks[found.tasks["benchmark"] == name]
        one = one[one["method"] == one["method"].iloc[0]]
        share = one.groupby("trial")[["unseen", f"{shot}-shot"]].apply(
            lambda group: pearson(group["unseen"], group[f"{shot}-shot"])
        )
        parts = [
            f"{found.labels[m]} {_number(rests[name, m], math.nan, 2)} "
            f"(all tasks {_number(found.r(name, shot, m), math.nan, 2)})"
            for m in found.names
        ]
        measured = f"{LABELS[name]}, {shot}-shot: {', '.join(parts)}; the share of unseen classes "
        measured += f"alone correlates by {_number(share.mean(), math.nan, 2)}"
        expected = "is it the mixture alone? r among tasks of one share of unseen classes"
        listed.append(Claim("this project", expected, measured, None))
    return listed


def _threshold_claims(found: _Found) -> list[Claim]:
    listed = []
    for chosen_on, used_on in permutations(found.known, 2):
        if "les" not in found.names:
            break
        t = threshold_transfer(found.tasks, "les", found.shot, chosen_on, used_on)
        expected = f"a threshold on LES chosen on {LABELS[chosen_on]} flags hard tasks of "
        expected += f"{LABELS[used_on]} (accuracy below {t['level']:.1%}, the median of the first)"
        measured = f"precision {_percent(t['precision'])}, recall {_percent(t['recall'])}, where "
        measured += f"{_percent(t['hard'])} are hard (LES ≥ {t['threshold']:.3g})"
        listed.append(Claim("this project", expected, measured, None))
    return listed


def notes(experiment: Tasks, table: pd.DataFrame) -> list[str]:
    """Return the paper's tables beside ours, cell by cell, and the tables of other questions."""
    found = _Found(experiment, table)
    paragraphs = [_setting(found)]
    for how in AGGREGATORS:
        title = f"Pearson's r of accuracy and dissimilarity, **{how}** over the references, "
        title += f"{experiment.n_trials} trials"
        title += "; the paper's value in brackets:" if found.known else ":"
        rows = [[m.label, *_cells(found, m.distance, how)] for m in found.methods]
        head = ["distance", *(_column(*c) for c in _all_columns(found))]
        paragraphs += [title, markdown_table(head, rows)]
    return [*paragraphs, *_time_table(found), *_mixture_table(found), *_transfer_table(found)]


def _setting(found: _Found) -> str:
    """Return the embedder and the sizes of tasks."""
    experiment, texts = found.experiment, []
    if found.known:
        texts.append(
            f"The embedder is {EMBEDDERS[experiment.embedder]}; the paper's is a ResNet-12 per "
            f"benchmark and shot. Tasks have {experiment.per_class} images of each class, the "
            f"paper's 600; for OT and GW {experiment.transport_per_class}. The corrected LES is "
            f"computed from blocks of a tenth of the images, with K = {experiment.per_class // 6}."
        )
    if "omniglot" in experiment.benchmarks:
        texts.append(
            "Tasks of Omniglot are 20 characters of an alphabet with 20 drawings each (N = 400, "
            f"K = {min(experiment.n_eigenvalues, 200)}), embedded by a Conv-4 that was trained "
            "here on the background alphabets; unseen characters are of evaluation alphabets."
        )
    return " ".join(texts)


def _all_columns(found: _Found) -> list[tuple[str, int]]:
    return [(b, s) for b in found.experiment.benchmarks for s in found.experiment.shots]


def _cells(found: _Found, method: str, how: str) -> list[str]:
    texts = []
    for column in _all_columns(found):
        paper = PAPER.get((how, method, *column))
        beside = "" if paper is None else f" ({_number(*paper, 3)})"
        texts.append(found.text(*column, method, how) + beside)
    return texts


def _time_table(found: _Found) -> list[str]:
    """Return the times of new tasks; not of the corrected LES, which keeps no descriptors."""
    experiment = found.experiment
    slow = [
        m.label for m in experiment.panels if f"{m.distance}-time" in set(found.table["method"])
    ]
    n = 5 * experiment.per_class if found.known else 400
    title = "Seconds of processor time per new task, mean ± standard deviation, with precomputed "
    title += f"descriptors of the references; N = {n}"
    if "geometry-score" in found.names:
        title += f", {experiment.rounds} rounds of GS"
    if slow:
        pairs = "pair" if experiment.timed_pairs == 1 else "pairs"
        title += f"; {' and '.join(slow)} timed on {experiment.timed_pairs} {pairs}, times "
        title += f"{experiment.n_references} references"
    title += ". The paper's, N = 3000, is the range of its six columns:" if found.known else ":"
    rows = [
        [m.label, _number(mean, std, max(0, 2 - math.floor(math.log10(mean))))]
        + [_paper_seconds(m.distance)] * bool(found.known)
        for m in experiment.panels
        for mean, std in [found.seconds(m)]
        if m.distance != "les-corrected" and not math.isnan(mean)
    ]
    head = ["distance", "seconds", *["paper"] * bool(found.known)]
    return [title, markdown_table(head, rows)] if rows else []


def _paper_seconds(method: str) -> str:
    values = [
        mean
        for (kind, name, *_), (mean, _) in PAPER.items()
        if (kind, name) == ("seconds", method)
    ]
    return f"{min(values):.4g} to {max(values):.4g}" if values else "–"


def _mixture_table(found: _Found) -> list[str]:
    rests = within(found.tasks, found.shot)
    shares = sorted(found.tasks["unseen"].unique())
    rows = [
        [LABELS[b], found.labels[m], *(_number(v, math.nan, 2) for v in (r, *map(by.get, shares)))]
        for b, m, r, by in rests.itertuples(index=False)
    ]
    title = f"r of {found.shot}-shot accuracy within a fixed share of unseen classes, after the "
    title += "mean of each trial and share is taken off (one column per share):"
    head = ["benchmark", "distance", "all shares", *(f"{share:.0%}" for share in shares)]
    return [title, markdown_table(head, rows)]


def _transfer_table(found: _Found) -> list[str]:
    rows = [
        [LABELS[a], LABELS[b], found.labels[m]]
        + [_percent(t[key]) for key in ("precision", "recall", "hard")]
        for a, b in permutations(found.known, 2)
        for m in found.names
        for t in [threshold_transfer(found.tasks, m, found.shot, a, b)]
    ]
    if not rows:
        return []
    title = (
        "A threshold on the mean dissimilarity, of largest F1 on one benchmark, flags the hard "
    )
    title += f"tasks of another ({found.shot}-shot accuracy below the first one's median)"
    if found.experiment.embedder == "resnet20":
        title += ". Both have the same seen classes, and their references and tasks of seen "
        title += "classes are the same"
    title += ":"
    head = ["chosen on", "used on", "distance", "precision", "recall", "share of hard tasks"]
    return [title, markdown_table(head, rows)]
