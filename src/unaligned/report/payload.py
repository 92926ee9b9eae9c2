"""What the page's script needs, as JSON that may stand inside HTML."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from .._check import FloatArray
from ..figures import COLOURS
from .content import Content

_SHADES = 64


def embedded(data: Any) -> str:
    r"""Return JSON that no HTML parser can leave: `<`, `>` and `&` are escaped.

    Examples
    --------
    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
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
        "names": comparison.names,
        "references": comparison.reference_names,
        "distances": _packed(comparison.distances),
        "bounds": _packed(comparison.error_bounds),
        "order": content.order,
        "tree": [] if content.linkage is None else content.linkage[:, :3].tolist(),
        "groups": None if content.groups is None else content.groups.labels,
        "maps": [
            {"method": m.method, "places": m.places.tolist(), "agreement": _number(m.agreement)}
            for m in content.maps
        ],
        "tags": [
            {"name": t.name, "numeric": t.is_numeric, "values": t.values, "groups": t.groups}
            for t in content.tags
        ],
        "correlations": [found._asdict() for found in content.correlations],
        "spectra": _spectra(content),
        "recipe": _recipe(content),
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
                "bound": _number(s.total_error_bound),
                "kind": s.bound_kind,
            }
            for s in signatures
        ],
    }


def _recipe(content: Content) -> dict[str, str]:
    comparison = content.comparison
    options = {key: repr(value) for key, value in comparison.options.items()}
    prepared = {key: repr(value) for key, value in comparison.preparation.items()}
    return {**options, **prepared, "seed": repr(comparison.seed)}


def _packed(values: FloatArray, dtype: str = "<f8") -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def _number(value: float) -> float | None:
    """Return a number that JSON knows: NaN and infinity are not."""
    return value if math.isfinite(value) else None


def _shades() -> list[str]:
    """Return viridis as hex colours: the same map as in the figures for papers."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in mpl.colormaps["viridis"](np.linspace(0, 1, _SHADES))]
