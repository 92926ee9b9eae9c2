"""Comparison to and from a file."""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _check
from ._format import jsonable
from .confidence import Inference
from .data.facts import Facts
from .data.preprocess import FittedStep
from .errors import restoring
from .io.archive import read_archive, write_archive
from .metrics.registry import resolve_distance
from .result import Comparison
from .spectra.signature import Signature

_FORMAT = "unaligned-comparison"
_PLAIN = (str, int, float, bool, type(None))  # options that a file can hold
_TABLE = " For a table of the distances use comparison.to_frame().to_csv(path)."


def write_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write a comparison and its descriptors to one file."""
    write_archive(path, _FORMAT, *to_parts(comparison), remedy=_TABLE)


def to_parts(comparison: Comparison) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return a comparison and its descriptors as a header for JSON, and arrays."""
    arrays = {"distances": comparison.distances, "error_bounds": comparison.error_bounds}
    signatures: list[Any] = []
    descriptors: list[Any] = []
    options = {k: v if isinstance(v, _PLAIN) else repr(v) for k, v in comparison.options.items()}
    header = {
        "names": comparison.names,
        "reference_names": comparison.reference_names,
        "distance": comparison.distance_name,
        "options": options,
        "restorable": all(isinstance(v, _PLAIN) for v in comparison.options.values()),
        "seed": comparison.seed,
        "is_square": comparison.is_square,
        "preparation": dict(comparison.preparation),
        "left_out": dict(comparison.left_out),
        "metadata": {name: _plain_part(row) for name, row in comparison.metadata.items()},
        "signatures": signatures,
        "descriptors": descriptors,
    }
    if comparison.inference is not None:
        values = vars(comparison.inference)
        arrays |= {f"inference_{k}": v for k, v in values.items() if isinstance(v, np.ndarray)}
        header["inference"] = {k: v for k, v in values.items() if not isinstance(v, np.ndarray)}
    header["steps"] = list(map(str, comparison._steps))
    for number, step in enumerate(comparison._steps):
        if isinstance(step, FittedStep):
            arrays |= {f"step{number}_offset": step.offset, f"step{number}_factor": step.factor}
    sides = {
        "row": (comparison._descriptors, comparison._facts),
        "column": (comparison._references, comparison._reference_facts),
    }
    for side, (store, facts) in sides.items():
        for name, item in store.items():
            if isinstance(item, Signature):
                part, values = item.to_parts()
                arrays |= {f"{len(signatures)}_{key}": v for key, v in values.items()}
                signatures.append([side, name, part])
            elif comparison.distance is not None and (kept := comparison.distance.to_arrays(item)):
                arrays |= {f"d{len(descriptors)}_{key}": v for key, v in kept.items()}
                known = [facts[name]._asdict()] if name in facts else []
                if known and not comparison.distance.same_features:
                    known[0]["feature_names"] = None  # 30,000 genes outweigh most descriptors
                descriptors.append([side, name, list(kept), *known])
    return header, arrays


def read_comparison(path: str | os.PathLike[str]) -> Comparison:
    """Read a comparison written by `write_comparison`."""
    header, arrays = read_archive(path, _FORMAT)
    with restoring(f"The comparison in {os.fspath(path)!r}"):
        return from_parts(header, arrays)


def from_parts(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Comparison:
    """Return the comparison, the inverse of `to_parts`."""
    stores: dict[str, dict[str, Any]] = {"row": {}, "column": {}}
    facts: dict[str, dict[str, Facts]] = {"row": {}, "column": {}}
    for number, (side, name, part) in enumerate(header["signatures"]):
        own = {key: arrays[f"{number}_{key}"] for key in ("eigenvalues", "lower", "upper")}
        stores[side][name] = Signature.from_parts(part, own)
    method = None
    if header["restorable"]:
        method = resolve_distance(header["distance"], header["options"])
    if method is not None:
        for number, (side, name, keys, *known) in enumerate(header.get("descriptors", ())):
            own = {key: arrays[f"d{number}_{key}"] for key in keys}
            if any(v.dtype.kind not in "iufc" or np.isnan(v).any() for v in own.values()):
                raise ValueError(f"the descriptor of {name!r} must be numbers")
            stores[side][name] = method.from_arrays(own)
            if known:  # absent in the first files of 0.1.0
                facts[side][name] = Facts.from_header(known[0])
    inference = None
    if "inference" in header:
        stored = {k.removeprefix("inference_"): v for k, v in arrays.items() if "inference_" in k}
        _check.require_types(Inference, {**stored, **header["inference"]})
        inference = Inference(**stored, **header["inference"])
    fitted = [
        _fitted_step(text, f"step{number}", arrays) if "@" in text else text
        for number, text in enumerate(header.get("steps", ()))
    ]
    steps = header["preparation"]["preprocess"]
    steps = None if steps is None else tuple(steps)
    values = {
        "names": tuple(header["names"]),
        "reference_names": tuple(header["reference_names"]),
        "distances": arrays["distances"],
        "error_bounds": arrays["error_bounds"],
        "distance": method,
        "distance_name": header["distance"],
        "options": header["options"],
        "seed": header["seed"],
        "is_square": header["is_square"],
        "preparation": {**header["preparation"], "preprocess": steps},
        "metadata": header.get("metadata", {}),  # absent in the first files of 0.1.0
        "inference": inference,
        "left_out": header.get("left_out", {}),  # absent in files of 0.1.0
    }
    _require_sound(values)
    for side, key in (("row", "names"), ("column", "reference_names")):
        if not stores[side].keys() <= {*values[key]}:
            raise ValueError(f"a descriptor belongs to none of the {key}")
    return Comparison(
        **values,
        _descriptors=stores["row"],
        _references=stores["column"],
        _facts=facts["row"],
        _reference_facts=facts["column"],
        _steps=tuple(fitted),
    )


def _fitted_step(text: str, place: str, arrays: Mapping[str, Any]) -> FittedStep:
    names = f"{place}_offset", f"{place}_factor"
    return FittedStep(text, *(_check.stored_numbers(name, arrays[name]) for name in names))


def _require_sound(values: Mapping[str, Any]) -> None:
    """Raise for types and shapes that no comparison has."""
    _check.require_types(Comparison, values)
    _check.positive_int("seed", values["seed"], minimum=0)
    names, others = values["names"], values["reference_names"]
    if not names or not others or any(len({*each}) < len(each) for each in (names, others)):
        raise ValueError("names are missing or repeated")
    if values["is_square"] and names != others:
        raise ValueError("a square comparison has other names in its columns")
    n, m = len(names), len(others)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("distances", "error_bounds"), (n, m))
    arrays = {name: values[name] for name in shapes}
    if values["inference"] is not None:
        shapes |= dict.fromkeys(("squared", "p_values", "p_holm", "p_bh"), (n, m))
        shapes |= {"intervals": (n, m, 2), "noise_floor": (n,), "reference_noise_floor": (m,)}
        arrays |= vars(values["inference"])
    limits = dict.fromkeys(("p_values", "p_holm", "p_bh"), (0.0, 1.0))
    limits |= dict.fromkeys(("squared", "intervals"), (-math.inf, math.inf))
    if values["distance"] is None or values["options"].get("unbiased"):  # may be negative
        limits["distances"] = -math.inf, math.inf
    for name, shape in shapes.items():
        numbers = arrays[name]
        if numbers.shape != shape or numbers.dtype.kind != "f":
            raise ValueError(f"{name} must be {shape} numbers")
        if name == "error_bounds":
            numbers = numbers[~np.isnan(numbers)]  # where no bound is known
        # By rounding, 1 - CKA can be negative.
        _check.stored_numbers(name, numbers, *limits.get(name, (-1e-9, math.inf)))


def _plain_part(metadata: Mapping[str, Any]) -> Any:
    """Return the numbers and text among the metadata."""
    kept = (str, int, float, np.integer, np.floating, np.bool_, type(None))
    found = {key: value for key, value in metadata.items() if isinstance(value, kept)}
    return jsonable(found, allow_nan=True)
