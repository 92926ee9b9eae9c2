"""The history of a drift monitor as one HTML page."""

from __future__ import annotations

import base64
import html
import os
import re
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from .. import __version__, _check
from ..errors import InputError, InputTypeError, counted, listed
from ..figures import drift_history
from ..figures.style import style
from ..io.archive import write_text
from . import SUFFIXES, as_list, asset, source_hash
from .summary import name as named

if TYPE_CHECKING:
    from ..inference.verdict import DriftCheck


def write_drift_report(
    history: Sequence[DriftCheck], path: str | os.PathLike[str], *, title: str | None = None
) -> None:
    """Write verdicts, a figure and a table of all checks; see `DriftMonitor.report`."""
    if title is not None and not isinstance(title, str):
        raise InputTypeError(f"title={title!r} must be text, not {_check.shape_of(title)}.")
    _check.suffix_of("path", path, SUFFIXES)
    if not history:
        raise InputError("The history is empty. Check a batch first.")
    n_drifted = sum(check.is_drift for check in history)
    last, css = history[-1], asset("style.css")
    title = title or f"Drift from {last.reference}"
    alt = f"P-values of {counted(len(history), 'batch', 'batches')}; {n_drifted} have drifted."
    fields = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; img-src data:; style-src {source_hash(css)}; "
        "base-uri 'none'; form-action 'none'",
        "subtitle": html.escape(_settings(last, _instruments(history))),
        "findings": as_list(_findings(history)),
        "cautions": as_list(_cautions(history)),
        "figure": _figure(history),
        "alt": html.escape(alt),
        "table": _table(history),
        "version": __version__,
        "style": css,
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], asset("drift.html"))
    write_text(path, page.encode("utf-8", "replace").decode())


def _instruments(history: Sequence[DriftCheck]) -> list[str]:
    return list(dict.fromkeys(r.name for check in history for r in check.readings))


def _settings(check: DriftCheck, instruments: Sequence[str]) -> str:
    parts = [f"{check.n_reference} rows in {check.reference}"]
    parts.append(f"{', '.join(instruments)} at alpha = {check.alpha:.2g}")
    if check.n_eigenvalues is not None:
        parts.append(f"K = {check.n_eigenvalues}, γ = {check.gamma:g}")
    return " · ".join(parts)


def _findings(history: Sequence[DriftCheck]) -> list[str]:
    """Return what was found, as sentences of HTML."""
    drifted = [check for check in history if check.is_drift]
    total = counted(len(history), "batch", "batches")
    if not drifted:
        return [f"None of {total} has drifted."]
    first, last = drifted[0], history[-1]
    found = [
        f"{len(drifted)} of {total} {'has' if len(drifted) == 1 else 'have'} drifted; the first "
        f"is {named(first.name)} ({html.escape(_time(first))}).",
        f"The last batch, {named(last.name)}, "
        f"{'has drifted' if last.is_drift else 'shows no drift'}.",
    ]
    seen = Counter(r.name for check in drifted for r in check.readings if r.is_drift)
    if seen:
        by = ", ".join(f"{html.escape(name)} in {count}" for name, count in seen.most_common())
        found.append(f"Seen by {by}.")
    moved = Counter(feature for check in drifted for feature in check.moved)
    if moved:
        often = [f"{named(feature)} ({count})" for feature, count in moved.most_common()]
        found.append(f"Features that moved, and in how many batches: {listed(often, 8)}.")
    return found


def _cautions(history: Sequence[DriftCheck]) -> list[str]:
    notes = dict.fromkeys(note for check in history for note in check.notes)
    rows = "Rows of one distribution that depend on each other, such as frames of one recording, "
    rows += "are not independent draws, and alarms are then more frequent than alpha."
    return [*map(html.escape, notes), rows]


def _table(history: Sequence[DriftCheck]) -> str:
    names = _instruments(history)
    heads = ["#", "batch", "time (UTC)", "rows", *(f"p of {n}" for n in names), "p", "alpha"]
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in (*heads, "verdict"))
    rows = "".join(f"<tr>{_row(check, names)}</tr>" for check in history)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(check: DriftCheck, names: Sequence[str]) -> str:
    own: dict[str, Any] = {r.name: f"{r.p_value:.2g}" for r in check.readings}
    moved = listed([*check.moved], 8)
    verdict = f"drift{f': {moved}' if moved else ''}" if check.is_drift else "no drift"
    cells: list[object] = [_time(check), check.n_samples]
    cells += [own.get(name, "") for name in names]
    cells += [f"{check.p_value:.2g}", f"{check.alpha:.2g}", verdict]
    text = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
    return (
        f'<td>{check.number}</td><th scope="row"><bdi>{html.escape(check.name)}</bdi></th>{text}'
    )


def _time(check: DriftCheck) -> str:
    return check.time.replace("T", " ").partition("+")[0]


def _figure(history: Sequence[DriftCheck]) -> str:
    """Return the figure as an address of its own content."""
    stream, figure = BytesIO(), drift_history(history).get_figure(root=True)
    assert figure is not None
    with style():
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"
