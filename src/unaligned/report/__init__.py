"""A comparison as one HTML file: the text by Python, the charts by the script inside it."""

import base64
import hashlib
import html
import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib import metadata, resources
from typing import Any

import numpy as np

from .. import _check
from .._check import FloatArray
from .._format import jsonable
from ..confidence import Inference
from ..defaults import SIGNIFICANCE
from ..errors import InputTypeError, counted, required
from ..explanation import Explanation, ScaleExplanation
from ..figures import COLOURS
from ..io.archive import write_text
from ..result import Comparison
from ..tags import metadata_tags, read_tags
from .content import Content
from .summary import cautions, findings, number, passed_checks
from .why import why_of

SUFFIXES = (".html", ".htm")
# In the order in which they are joined to one script.
_SCRIPTS: tuple[str, ...] = ("base", "chart", "interaction", "heatmap", "map", "spectra", "pair")
_SCRIPTS += ("why", "correlation", "tables", "main")


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    tags: Any = None,
    explanations: Sequence[Explanation | ScaleExplanation] = (),
    command: str | None = None,
) -> None:
    """Write the report of a comparison; see `Comparison.report`.

    O(n³) time for n datasets (the maps). About 21 bytes per distance and 16 per eigenvalue.
    """
    for name, value in (("title", title), ("command", command)):
        if value is not None and not isinstance(value, str):
            raise InputTypeError(f"{name}={value!r} must be text, not {_check.shape_of(value)}.")
    _check.suffix_of("path", path, SUFFIXES)
    if tags is not None:
        shown = read_tags(tags, comparison.names)
    else:
        own = metadata_tags(comparison.metadata, comparison.names)
        shown = [tag for tag in own if not tag.is_constant]
    if not title:
        n, m = comparison.distances.shape
        against = " compared" if comparison.is_square else f" against {counted(m, 'reference')}"
        title = f"{counted(n, 'dataset')}{against}"
    content = Content(comparison, shown, why_of(comparison, explanations))
    page = _page(content, title, command)
    # File names may contain lone surrogates, which UTF-8 cannot encode.
    write_text(path, page.encode("utf-8", "replace").decode())


def _page(content: Content, title: str, command: str | None) -> str:
    style = asset("style.css")
    parts = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'  # one closed scope
    subtitle = [_distance(content.comparison)]
    for _, first in content.signatures[:1]:
        subtitle += [f"K = {first.n_eigenvalues}", f"γ = {number(first.recipe.gamma)}"]
    limits = cautions(content)
    if command:  # options as they are typed in a shell
        option = re.compile(r'<code>(\w+)="(\w+)"</code>')
        limits = [option.sub(r"<code>--\1 \2</code>", limit) for limit in limits]
        limits = [limit.replace("<code>tol</code>", "<code>--tol</code>") for limit in limits]
    checks = passed_checks(content)
    if command:
        checks = [check.replace("inference=True", "--inference") for check in checks]
    if not limits:
        checks.insert(0, "No problems were found.")
    fields = {
        "title": html.escape(title),
        # The page may run its own script and fetch nothing.
        "policy": f"default-src 'none'; img-src data:; script-src {source_hash(script)}; "
        f"style-src {source_hash(style)}; base-uri 'none'; form-action 'none'",
        "subtitle": html.escape(" · ".join(subtitle)),
        "findings": as_list(findings(content)),
        "cautions": as_list(limits),
        "checks": as_list(checks),
        "recipe": _terms(_recipe(content)),
        "versions": _terms(_versions(content)),
        "command": html.escape(command or _call(content.comparison)),
        "made_by": "Command" if command else "In Python",
        "data": embedded(payload(content, title)),
        "style": style,
        "script": script,
    }
    # In one pass, so that text that was filled in is not searched again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], asset("template.html"))


def asset(name: str) -> str:
    """Return the text of a file in assets/."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """Return the hash by which a page allows its own script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def as_list(sentences: Iterable[str]) -> str:
    """Return sentences of HTML as items of a list."""
    return "".join(f"<li>{sentence}</li>" for sentence in sentences)


def _terms(terms: dict[str, str]) -> str:
    rows = ((html.escape(term), html.escape(value)) for term, value in terms.items())
    return "".join(f"<div><dt>{term}</dt><dd>{value}</dd></div>" for term, value in rows)


def _distance(comparison: Comparison) -> str:
    name, distance = comparison.distance_label, comparison.distance
    return f"{name} distance" if distance is None else f"{name}: {distance.summary}"


def _recipe(content: Content) -> dict[str, str]:
    options = {key: repr(value) for key, value in content.comparison.call_options.items()}
    terms = {"distance": _distance(content.comparison), **options}
    if content.signatures:
        solvers = sorted({s.spectrum.solver for _, s in content.signatures})
        terms |= {"solvers used": ", ".join(solvers), "error bounds": content.bound_kinds}
    return terms


def _versions(content: Content) -> dict[str, str]:
    """Return the versions of the report, and of the signatures if they differ."""
    from .. import __version__

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}
    versions = {"unaligned": __version__, **packages}
    older = {s.recipe.version for _, s in content.signatures} - {"", __version__}
    if older:
        versions["signatures made by unaligned"] = ", ".join(sorted(older))
    return {**versions, "Python": platform.python_version(), "system": platform.system()}


def _call(comparison: Comparison) -> str:
    """Return the call that repeats this comparison of the same datasets."""
    options = {"distance": comparison.distance_name, **comparison.call_options}
    against = "datasets" if comparison.is_square else "datasets, references"
    arguments = [f"{key}={value!r}" for key, value in options.items()]
    return f"unaligned.compare(\n    {against},\n    " + ",\n    ".join(arguments) + ",\n)"


def embedded(data: Any) -> str:
    """Return JSON that cannot end an HTML element: `<`, `>` and `&` are escaped."""
    text = json.dumps(jsonable(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def payload(content: Content, title: str) -> dict[str, Any]:
    """Return the data of the script; arrays as base64, exact and half as long as digits."""
    mpl = required("matplotlib", "report", "A report")
    from matplotlib.colors import to_hex

    comparison = content.comparison
    return {
        "title": title,
        "distance": comparison.distance_label,
        "isSquare": comparison.is_square,
        "isLes": comparison.distance_name == "les",
        "isSquared": comparison.options.get("squared") is True,
        "names": comparison.names,
        "references": comparison.reference_names,
        "distances": _packed(comparison.distances),
        "bounds": _packed(comparison.error_bounds),
        "inference": None if comparison.inference is None else _inference(comparison.inference),
        "order": content.order,
        "tree": [] if content.linkage is None else content.linkage[:, :3],
        "groups": None if content.groups is None else content.groups.labels,
        "maps": [found._asdict() for found in content.maps],
        "tags": [
            {"name": t.name, "numeric": t.is_numeric, "values": t.values, "groups": t.groups}
            for t in content.tags
        ],
        "correlations": [found._asdict() for found in content.correlations],
        "why": content.why,
        "spectra": _spectra(content) if content.signatures else None,
        "recipe": {key: repr(value) for key, value in comparison.call_options.items()},
        "colours": COLOURS,
        # The colour map of the figures in 64 steps, one of which the eye does not see.
        "shades": [to_hex(shade) for shade in mpl.colormaps["viridis"](np.linspace(0, 1, 64))],
    }


def _spectra(content: Content) -> dict[str, Any]:
    signatures = [s for _, s in content.signatures]
    return {
        "names": [name for name, _ in content.signatures],
        "gamma": signatures[0].recipe.gamma,
        "k": signatures[0].n_eigenvalues,
        "eigenvalues": _packed(np.stack([s.eigenvalues for s in signatures])),
        "errors": _packed(np.stack([s.error_bound for s in signatures]), "<f4"),
        "datasets": [
            {
                "samples": s.n_samples,
                "features": s.n_features,
                "sigmaSquared": s.sigma_squared,
                "solver": s.spectrum.solver,
                "bound": s.total_error_bound,
                "kind": s.bound_kind,
            }
            for s in signatures
        ],
    }


def _inference(found: Inference) -> dict[str, Any]:
    return {
        "corrected": _packed(found.corrected),
        "low": _packed(found.intervals[..., 0]),
        "high": _packed(found.intervals[..., 1]),
        "p": _packed(found.p_values),
        "holm": _packed(found.p_holm),
        "floor": found.noise_floor,
        "referenceFloor": found.reference_noise_floor,
        "blockSize": found.block_size,
        "level": SIGNIFICANCE,
    }


def _packed(values: FloatArray, dtype: str = "<f8") -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()
