"""Argument validators, and the conversion of nested settings to flat options."""

import difflib
import math
import numbers
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from .errors import InputError, InputTypeError, OptionError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.int64]
RNGLike: TypeAlias = int | np.random.Generator | None
Settings = TypeVar("Settings")

# Names of options of reading in pertpy and scanpy.
_SYNONYMS = {"groupby": "group_by", "obsm_key": "use_rep", "layer_key": "layer"}


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int; True, 2.0 and "2" raise."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        kind = type(value).__name__
        raise InputTypeError(f"{name}={value!r} must be a whole number, not {kind}.")
    return int(value)


def positive_int(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`."""
    number = whole_number(name, value)
    if number < minimum:
        raise InputError(f"{name}={value!r} must be at least {minimum}.")
    return number


def optional_int(name: str, value: object, *, minimum: int = 1) -> int | None:
    """Return `value` as an int of at least `minimum`; None stays None."""
    return None if value is None else positive_int(name, value, minimum=minimum)


def real_number(
    name: str,
    value: object,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    strict: bool = False,
) -> float:
    """Return `value` as a finite float from (with `strict`, above) `minimum` to `maximum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name}={value!r} must be a number, not {type(value).__name__}.")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name}={value!r} must be finite.")
    if number < minimum or (strict and number == minimum):
        rule = "above" if strict else "at least"
        raise InputError(f"{name}={value!r} must be {rule} {minimum:g}.")
    if number > maximum:
        raise InputError(f"{name}={value!r} must be at most {maximum:g}.")
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False; anything else raises."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name}={value!r} must be True or False.")
    return bool(value)


def one_of(
    name: str,
    value: object,
    allowed: Iterable[str],
    also: Mapping[str, str] | None = None,
    *,
    or_number: bool = False,
) -> str:
    """Return `value` if it is one of `allowed`, else suggest the nearest choice.

    `also` maps other names of the choices, which are suggested but not accepted.
    """
    choices = tuple(allowed)
    if isinstance(value, str) and value in choices:
        return value
    raise InputError(
        f"{name}={value!r} is not known.{did_you_mean(value, choices, also)} "
        f"Choose one of: {', '.join(choices)}{', or a number' if or_number else ''}."
    )


def utf8_text(name: str, text: str) -> None:
    """Raise for text that UTF-8 cannot encode, such as arguments in another encoding."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        bad = text[error.start : error.end]
        raise InputError(f"{name}={text!r} is not UTF-8 text. Leave out {bad!r}.") from None


def file_path(name: str, value: object) -> Path:
    """Return `value` as a path; None, numbers, bytes and the empty string raise."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text:
        found = shape_of(value) if hasattr(value, "shape") else repr(value)
        raise InputTypeError(f"{name}={found} must be a path: a string or a pathlib.Path.")
    return Path(text)


def suffix_of(name: str, path: object, allowed: Collection[str], remedy: str = "") -> str:
    """Return the suffix of a path in lower case, such as `.npz`, if it is `allowed`."""
    suffix = file_path(name, path).suffix.lower()
    if suffix not in allowed:
        known = ", ".join(filter(None, allowed))
        raise InputError(f"{name}={str(path)!r} must end in {known}.{remedy}")
    return suffix


def position(what: str, name: object, names: Sequence[str]) -> int:
    """Return the index of `name` in `names`, which are strings; `name` may be a number."""
    if str(name) not in names:
        near = did_you_mean(name, names)
        raise InputError(f"There is no {what} {name!r}.{near} Names: {', '.join(names)}.")
    return names.index(str(name))


# Names of the paper and of other libraries, to suggest ours.
SYNONYMS = {
    "sigma": "bandwidth",
    "k": "n_eigenvalues",
    "n_components": "n_eigenvalues",
    "reg": "epsilon",
    "random_state": "rng",
    "seed": "rng",
    "reference": "references",
}


def known_options(
    owner: str,
    options: Iterable[str],
    allowed: Iterable[str],
    arguments: Iterable[str] = (),
) -> None:
    """Raise for option names that `owner` does not have, suggesting the nearest one.

    `arguments` are other names of the caller that may be suggested.
    """
    choices = sorted(allowed)
    also = {word: name for word, name in SYNONYMS.items() if name in {*choices, *arguments}}
    for option in options:
        if option not in choices:
            raise OptionError(
                f"{owner} has no option {option!r}.{did_you_mean(option, choices, also)} "
                f"Its options are: {', '.join(choices) or 'none'}."
            )


def did_you_mean(
    value: object, choices: Iterable[str], also: Mapping[str, str] | None = None
) -> str:
    """Return ' Did you mean ...?' for the choice nearest to `value`, or an empty string."""
    words = {choice.lower(): choice for choice in choices} | dict(also or {})
    near = difflib.get_close_matches(str(value).lower(), words, n=1)
    return f" Did you mean {words[near[0]]!r}?" if near else ""


def root_seed(rng: RNGLike) -> int:
    """Return the root seed of an `rng` argument (SPEC 7: None, int, Generator).

    None means 0, a departure from SPEC 7: a signature is then a function of the data and the
    recipe alone, so caches agree between runs.
    """
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, numbers.Integral) and not isinstance(rng, bool):
        return positive_int("rng", rng, minimum=0)
    raise InputTypeError(
        f"rng={rng!r} must be None, a whole number or a numpy.random.Generator, "
        f"not {type(rng).__name__}."
    )


def shape_of(value: Any) -> str:
    """Return the type and shape of a value, for error messages."""
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__}{'' if shape is None else f' of shape {tuple(shape)}'}"


def is_missing(value: object) -> bool:
    """Whether this is None, NaN, or the NA or NaT of pandas."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


_TEXT_REMEDY = "Encode it, or leave it out; numbers written as text: values.astype(float)."
# What values of a kind of dtype are, and how they become numbers.
_NOT_NUMERIC = {
    "O": ("Python objects", "If all are numbers, use values.astype(float)."),
    "U": ("text", _TEXT_REMEDY),
    "S": ("bytes", _TEXT_REMEDY),
    "c": ("complex numbers", "Use abs(values), or np.hstack([values.real, values.imag])."),
    "M": ("dates", "Use times, such as (values - values.min()) / np.timedelta64(1, 'D')."),
    "m": ("time spans", "Divide by a unit: values / np.timedelta64(1, 'D')."),
    "V": ("records", "Use numpy.lib.recfunctions.structured_to_unstructured(values)."),
}


def require_numeric(dtype: np.dtype[Any], label: str) -> None:
    """Raise if values are not real numbers."""
    if dtype.kind in "biuf":
        return
    kind = "" if dtype.kind == "V" and not dtype.names else dtype.kind  # bfloat16 of ml_dtypes
    other = (str(dtype), "Convert it first, e.g. values.astype(float).")
    what, remedy = _NOT_NUMERIC.get(kind, other)
    raise InputTypeError(
        f"{label} must hold real numbers; it holds {what} (dtype {dtype}). {remedy}"
    )


def is_path(data: object) -> bool:
    """Return whether this is a path rather than data."""
    return isinstance(data, (str, os.PathLike))


def is_anndata(data: object) -> bool:
    """Return whether this is an AnnData object, a view of one included."""
    return any(
        base.__name__ == "AnnData" and base.__module__.partition(".")[0] == "anndata"
        for base in type(data).__mro__
    )


def is_frame(data: object) -> bool:
    """Return whether this is a DataFrame of pandas."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pandas.")


def reject_anndata(data: Any, label: str) -> None:
    """Raise for an AnnData or MuData object as a whole; its matrices are accepted."""
    if type(data).__name__ == "MuData":
        raise InputTypeError(
            f"{label} is a MuData object, which holds several modalities. Choose one: "
            "mdata.mod['rna'], or compare them with each other: dict(mdata.mod)."
        )
    if type(data).__name__ == "AnnData":
        raise InputTypeError(
            f"{label} is an AnnData object, which holds several matrices. Choose one: adata.X, "
            "adata.layers[...], adata.obsm['X_pca'], or ua.load(adata, use_rep='X_pca')."
        )


def with_our_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of reading with `groupby` as `group_by` and `obsm_key` as `use_rep`."""
    for theirs, ours in _SYNONYMS.items():
        if theirs in options and ours in options:
            raise InputError(f"{theirs} is another name of {ours}. Give one of them.")
    return {_SYNONYMS.get(name, name): value for name, value in options.items()}


_LARGEST = sys.float_info.max


def stored_numbers(
    name: str, values: npt.NDArray[Any], minimum: float = -_LARGEST, maximum: float = _LARGEST
) -> FloatArray:
    """Return an array of a file as floats; text, complex numbers and NaN raise."""
    if values.dtype.kind not in "iuf" or not ((values >= minimum) & (values <= maximum)).all():
        raise InputError(f"{name} must hold numbers from {minimum:g} to {maximum:g}, and no NaN")
    return np.asarray(values, dtype=float)


_type_hints = cache(get_type_hints)  # which takes 0.2 ms, and a store has many rows


def require_types(kind: type, values: Mapping[str, Any]) -> None:
    """Raise for values, such as those of a file, that fields of a class do not take."""
    hints = _type_hints(kind)
    for name in values.keys() & hints.keys():
        if not _has_type(values[name], hints[name]):
            raise InputTypeError(f"{name}={values[name]!r:.60} is not of the expected type")


def _has_type(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type; True is no number, and neither is NaN.

    Knows classes, unions, `tuple[X, ...]`, `list[X]`, `dict[X, Y]`, `Mapping[X, Y]` and arrays.
    """
    if hint is Any or type(value) is hint:
        return hint is not float or value == value
    if hint in (int, float):
        return isinstance(value, (int, hint)) and type(value) is not bool and value == value
    if isinstance(hint, type):
        return isinstance(value, hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_has_type(value, each) for each in arguments)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin in (dict, Mapping):
        is_mapping = isinstance(value, origin)
        return is_mapping and all(_has_type(each, arguments[1]) for each in value.values())
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        return isinstance(value, origin) and all(_has_type(each, arguments[0]) for each in value)
    raise NotImplementedError(f"values of type {hint} cannot be checked")


@cache
def option_names(settings: type) -> tuple[str, ...]:
    """Return the names of all options, including those of nested settings."""
    return tuple(
        option
        for name, nested in _layout(settings)
        for option in ((name,) if nested is None else option_names(nested))
    )


def from_options(settings: type[Settings], options: Mapping[str, Any]) -> Settings:
    """Return settings built from flat options; missing names keep their defaults."""
    arguments: dict[str, Any] = {}
    for name, nested in _layout(settings):  # type: ignore[arg-type]
        if nested is not None:
            arguments[name] = from_options(nested, options)
        elif name in options:
            value = options[name]  # NumPy scalars cannot be written to JSON
            arguments[name] = value.item() if isinstance(value, np.generic) else value
    return settings(**arguments)


def to_options(settings: Any) -> dict[str, Any]:
    """Return settings as flat options, the inverse of `from_options`."""
    options: dict[str, Any] = {}
    for name, nested in _layout(type(settings)):  # type: ignore[arg-type]
        value = getattr(settings, name)
        options |= {name: value} if nested is None else to_options(value)
    return options


@cache
def _layout(settings: Any) -> tuple[tuple[str, type | None], ...]:
    """Return (name, class) of every field; the class is None unless the field is settings."""
    return tuple(
        (field.name, field.default_factory if is_dataclass(field.default_factory) else None)
        for field in (fields(settings) if is_dataclass(settings) else ())  # a class without any
    )
