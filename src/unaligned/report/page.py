"""One HTML file: the words by Python, the charts by the script inside it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import platform
import re
from collections.abc import Iterable
from importlib import metadata, resources
from typing import Any

import numpy as np

from .. import _check
from .._check import FloatArray
from .._format import jsonable
from ..errors import InputTypeError, counted
from ..figures import COLOURS
from ..io.archive import write_text
from ..result import Comparison
from ..tags import Tag, metadata_tags, read_tags
from .content import Content
from .summary import assurances, cautions, findings, number

_SHADES = 64


def embedded(data: Any) -> str:
    r"""Return JSON that no HTML parser can leave: `<`, `>` and `&` are escaped.

    Examples
    --------
    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(jsonable(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def payload(content: Content, title: str) -> dict[str, Any]:
    """Return all that the script draws; arrays as base64, exact and half as long as digits."""
    comparison = content.comparison
    return {
        "title": title,
        "distance": comparison.distance_name,
        "isSquare": comparison.is_square,
        "isLes": comparison.distance_name == "les",
        "isSquared": comparison.options.get("squared") is True,
        "names": comparison.names,
        "references": comparison.reference_names,
        "distances": _packed(comparison.distances),
        "bounds": _packed(comparison.error_bounds),
        "order": content.order,
        "tree": [] if content.linkage is None else content.linkage[:, :3],
        "groups": None if content.groups is None else content.groups.labels,
        "maps": [
            {"method": m.method, "places": m.places, "agreement": m.agreement}
            for m in content.maps
        ],
        "tags": [
            {"name": t.name, "numeric": t.is_numeric, "values": t.values, "groups": t.groups}
            for t in content.tags
        ],
        "correlations": [found._asdict() for found in content.correlations],
        "spectra": _spectra(content),
        "recipe": _recipe_payload(content),
        "colours": COLOURS,
        "shades": _shades(),
    }


def _spectra(content: Content) -> dict[str, Any] | None:
    """Return all spectra, or None where the distance has none."""
    if not content.signatures:
        return None
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


def _recipe_payload(content: Content) -> dict[str, str]:
    comparison = content.comparison
    options = {key: repr(value) for key, value in comparison.options.items()}
    prepared = {key: repr(value) for key, value in comparison.preparation.items()}
    return {**options, **prepared, "seed": repr(comparison.seed)}


def _packed(values: FloatArray, dtype: str = "<f8") -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def _shades() -> list[str]:
    """Return viridis as hex colours: the same map as in the figures for papers."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in mpl.colormaps["viridis"](np.linspace(0, 1, _SHADES))]


# In the order in which they are joined to one script.
_SCRIPTS = (
    "base.js",
    "chart.js",
    "steered.js",
    "heatmap.js",
    "map.js",
    "spectra.js",
    "pair.js",
    "correlation.js",
    "tables.js",
    "main.js",
)
SUFFIXES = (".html", ".htm")
_NO_CAUTION = "Nothing stood out; what was checked stands below."
_PACKAGES = ("unaligned", "numpy", "scipy", "scikit-learn")


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    tags: Any = None,
    command: str | None = None,
) -> None:
    """Write the report of a comparison; see `Comparison.report`.

    O(n³) time for n datasets (the maps). About 21 bytes for each distance and 16 for each
    eigenvalue.
    """
    for name, value in (("title", title), ("command", command)):
        if value is not None and not isinstance(value, str):
            raise InputTypeError(f"{name}={value!r} must be text, not {_check.shape_of(value)}.")
    _check.suffix_of("path", path, SUFFIXES)
    content = Content(comparison, _tags(comparison, tags))
    page = _page(content, title or _title(comparison), command)
    # Names of files may hold halves of characters, which no file of text can.
    write_text(path, page.encode("utf-8", "replace").decode())


def _tags(comparison: Comparison, tags: Any) -> list[Tag]:
    """Return the tags that were given, or those of the metadata that tell datasets apart."""
    if tags is not None:
        return read_tags(tags, comparison.names)
    own = metadata_tags(comparison.metadata, comparison.names)
    return [tag for tag in own if not tag.is_constant]


def _title(comparison: Comparison) -> str:
    n, m = comparison.distances.shape
    datasets = counted(n, "dataset")
    if comparison.is_square:
        return f"{datasets} compared"
    return f"{datasets} against {counted(m, 'reference')}"


def _page(content: Content, title: str, command: str | None) -> str:
    style, script = _asset("style.css"), _script()
    careful = [_typed(told) if command else told for told in cautions(content)]
    parts = {
        "title": html.escape(title),
        "policy": _policy(style, script),
        "subtitle": _subtitle(content),
        "findings": _list(findings(content)),
        "cautions": _list(careful),
        "assurances": _list([*([] if careful else [_NO_CAUTION]), *assurances(content)]),
        "recipe": _terms(_recipe(content)),
        "versions": _terms(_versions(content)),
        "command": html.escape(command or _call(content.comparison)),
        "made_by": "Command" if command else "In Python",
        "data": embedded(payload(content, title)),
        "style": style,
        "script": script,
    }
    # In one pass, so that what was filled in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("template.html"))


def _typed(sentence: str) -> str:
    """Return a sentence with the options of Python as they are typed in a shell."""
    found = re.sub(r'<code>(\w+)="(\w+)"</code>', r"<code>--\1 \2</code>", sentence)
    return found.replace("<code>tol</code>", "<code>--tol</code>")


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    """Return the parts of the script in one closed scope, so that they see each other only."""
    parts = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _policy(style: str, script: str) -> str:
    """Return a policy under which the page can run its own script and fetch nothing at all."""
    return (
        f"default-src 'none'; img-src data:; script-src {_hash(script)}; "
        f"style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _subtitle(content: Content) -> str:
    comparison = content.comparison
    parts = [f"{html.escape(comparison.distance_name)} distance"]
    if comparison.distance is not None:
        parts = [f"{html.escape(comparison.distance_name)}: {comparison.distance.summary}"]
    if content.signatures:
        first = content.signatures[0][1]
        parts += [f"K = {first.n_eigenvalues}", f"γ = {number(first.recipe.gamma)}"]
    return " · ".join(parts)


def _list(sentences: Iterable[str]) -> str:
    return "".join(f"<li>{sentence}</li>" for sentence in sentences)


def _terms(terms: dict[str, str]) -> str:
    return "".join(
        f"<div><dt>{html.escape(term)}</dt><dd>{html.escape(value)}</dd></div>"
        for term, value in terms.items()
    )


def _recipe(content: Content) -> dict[str, str]:
    comparison = content.comparison
    terms = {"distance": comparison.distance_name}
    if comparison.distance is not None:
        terms["distance"] += f": {comparison.distance.summary}"
    settings = {**comparison.options, **comparison.preparation}
    terms |= {key: _told(value) for key, value in settings.items() if value is not None}
    if content.signatures:
        solvers = sorted({s.spectrum.solver for _, s in content.signatures})
        terms |= {"solvers that ran": ", ".join(solvers), "error bounds": content.bound_kinds}
    return {**terms, "root seed": str(comparison.seed)}


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _versions(content: Content) -> dict[str, str]:
    """Return what the report was made with, and what the signatures were, if that differs."""
    versions = {name: _version(name) for name in _PACKAGES}
    made = {s.recipe.version for _, s in content.signatures} - {"", versions["unaligned"]}
    if made:
        versions["signatures made by unaligned"] = ", ".join(sorted(made))
    return {**versions, "Python": platform.python_version(), "system": platform.system()}


def _version(package: str) -> str:
    if package == "unaligned":
        from .. import __version__

        return __version__
    return metadata.version(package)


def _call(comparison: Comparison) -> str:
    """Return the call that makes this comparison of the same datasets again."""
    given = {**comparison.options, **comparison.preparation}
    options = [f"{key}={value!r}" for key, value in given.items() if value is not None]
    against = "datasets" if comparison.is_square else "datasets, references"
    arguments = [f"distance={comparison.distance_name!r}", *options, f"rng={comparison.seed}"]
    return f"unaligned.compare(\n    {against},\n    " + ",\n    ".join(arguments) + ",\n)"
