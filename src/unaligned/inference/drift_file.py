"""A drift monitor to and from a file: arrays and a JSON header, no pickles."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from ..data.facts import Facts
from ..data.preprocess import FittedStep
from ..errors import InputError, restoring
from ..io.archive import read_archive, write_archive
from ..metrics.les import LES
from .baseline import Baseline, Settings, View
from .instruments import Features, Instrument, Kernel, Shape
from .verdict import DriftCheck

_FORMAT = "drift monitor"
Arrays = dict[str, npt.NDArray[Any]]


def save_monitor(
    path: str | os.PathLike[str],
    settings: Settings,
    baseline: Baseline,
    history: Sequence[DriftCheck],
) -> None:
    """Write a monitor; see `DriftMonitor.save`."""
    arrays: Arrays = {} if baseline.points is None else {"points": baseline.points}
    header = {
        "settings": settings.to_dict(),
        "name": baseline.name,
        "facts": baseline.facts._asdict(),
        "fingerprint": baseline.fingerprint,
        "block_size": baseline.block_size,
        "n_rows": baseline.n_rows,
        "view": _pack(baseline.view, arrays),
        "history": [check.to_dict() for check in history],
    }
    try:
        json.dumps(header)
    except TypeError as error:
        raise InputError(
            f"The monitor cannot be saved: one of its options is not text or a number ({error}). "
            "Give the metric and the solver by name."
        ) from error
    write_archive(path, _FORMAT, header, arrays)


def load_monitor(
    path: str | os.PathLike[str],
) -> tuple[Settings, Baseline, list[DriftCheck]]:
    """Return what `save_monitor` wrote."""
    header, arrays = read_archive(path, _FORMAT)
    with restoring(f"The monitor in {os.fspath(path)!r}"):
        for name, values in arrays.items():
            is_table = values.ndim == 2 or name.endswith(("/offset", "/factor"))
            if not is_table or values.dtype.kind != "f" or not np.isfinite(values).all():
                raise ValueError(f"{name} must be a table of finite numbers")
        view = _unpack(header["view"], arrays)
        if not view.instruments:
            raise ValueError("it has no instruments")
        given = {key: header[key] for key in ("name", "fingerprint", "block_size", "n_rows")}
        _check.require_types(Baseline, given)
        facts = Facts.from_header(header["facts"])
        _check.positive_int("block_size", given["block_size"])
        _check.positive_int("n_rows", given["n_rows"], minimum=0)
        if max(given["block_size"], given["n_rows"]) > facts.n_samples:
            raise ValueError("blocks and rows do not fit the reference")
        baseline = Baseline(
            **given,
            facts=facts,
            view=view,
            points=arrays.get("points"),
        )
        history = [DriftCheck.from_dict(check) for check in header["history"]]
        return Settings.from_dict(header["settings"]), baseline, history


def _pack(view: View, arrays: Arrays) -> dict[str, Any]:
    """Return a view for the header; its arrays are added to `arrays`."""
    for i, step in enumerate(view.steps):
        if isinstance(step, FittedStep):
            arrays |= {f"{i}/offset": step.offset, f"{i}/factor": step.factor}
    packed = []
    for instrument in view.instruments:
        own: dict[str, Any] = {"name": instrument.name}
        if isinstance(instrument, Shape):
            own |= {"size": instrument.size, "options": instrument.method.options()}
        elif isinstance(instrument, Kernel):
            own |= {"size": instrument.size, "width": instrument.width}
        found = instrument.arrays()
        arrays |= {f"{instrument.name}/{key}": value for key, value in found.items()}
        packed.append(own)
    return {"steps": list(view.steps), "instruments": packed}


def _unpack(view: Mapping[str, Any], arrays: Arrays) -> View:
    steps = [
        FittedStep(step, arrays[f"{i}/offset"], arrays[f"{i}/factor"])
        if f"{i}/offset" in arrays
        else step
        for i, step in enumerate(view["steps"])
    ]
    found = [_instrument(own, arrays) for own in view["instruments"]]
    return View(tuple(steps), tuple(found))


def _instrument(own: Mapping[str, Any], arrays: Arrays) -> Instrument:
    if "size" in own:
        _check.positive_int("size", own["size"])
    if "options" in own:
        method, vectors = LES.from_options(own["options"]), arrays[f"{own['name']}/vectors"]
        if method.settings.n_eigenvalues != vectors.shape[1]:
            raise ValueError("signatures and n_eigenvalues differ")
        return Shape.of(method, vectors, own["size"])
    points = arrays["points"]
    if own["name"] == Features.name:
        return Features(np.sort(points, axis=0))
    means, width = arrays[f"{own['name']}/means"], _check.real_number("width", own["width"])
    if len(means) != means.shape[1] or len(means) * own["size"] > len(points):
        raise ValueError("means do not fit the points")
    return Kernel.of(own["name"], points, own["size"], width, means)
