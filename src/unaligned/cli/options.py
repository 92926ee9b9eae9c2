"""Options shared by several commands, and reading of the files that they name."""

from __future__ import annotations

import ast
import glob
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..defaults import BANDWIDTH_RULES, GAMMA, KERNELS, N_EIGENVALUES, TOL
from ..errors import FileError, InputError, UnalignedError, merged, required
from .printing import print_problem

if TYPE_CHECKING:
    from ..cache import Cache
    from ..data.dataset import Dataset

# So that help imports none.
SOLVERS = ("auto", "exact", "krylov", "landmarks", "nystrom", "sampled")
_FEWEST = f"min({N_EIGENVALUES}, the fewest rows)"
FORMATS = (".csv", ".json", ".npz")  # in which distances and signatures are written


def option(
    help: str, default: str | bool = False, *flags: str, panel: str | None = None, **settings: Any
) -> Any:
    """Return a Typer option; `default` is shown in the help page."""
    settings |= {"help": help, "show_default": default, "rich_help_panel": panel}
    return typer.Option(*flags, **settings)


_file = partial(option, panel="Files")
_signature = partial(option, panel="Signature")
_run = partial(option, panel="Run")


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion of these names for the shell."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def choice(names: Sequence[str], also: str = "", **settings: Any) -> Any:
    """Return an option of signatures that takes one of these names, by default the first."""
    settings = {"autocompletion": completing(names), **settings}
    return _signature(f"One of {', '.join(names)}{also}.", names[0], **settings)


def literal(text: str) -> Any:
    """Return a number, true, false or null as a Python value, other text unchanged."""
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return parse(text)
    return text


def pairs(
    option: str, texts: Iterable[str] | None, example: str = "organ=liver"
) -> dict[str, str]:
    """Return the keys and values of KEY=VALUE texts."""
    from .. import _check

    found = {}
    for text in texts or ():
        _check.utf8_text(option, text)
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f"{option} {text!r} must be KEY=VALUE, such as {example}.")
        found[key] = value
    return found


def distance_options(texts: Iterable[str] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options, and those of a distance from KEY=VALUE texts."""
    found = pairs("--option", texts, "squared=true")
    for name in found.keys() & given.keys():
        raise InputError(f"--option {name!r} and {name}= set the same. Use {name}= only.")
    return {**given, **{key: literal(value) for key, value in found.items()}}


def words(text: str | None) -> list[str] | None:
    """Return the items of a list such as `les,imd`; None stays None."""
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def require_writable(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Raise an error if a file could not be written, before anything is computed."""
    from .. import _check

    _check.suffix_of(option, path, suffixes)
    if path.is_dir():
        raise FileError(f"Cannot write {str(path)!r}: it is a folder. Name a file in it.")
    if not os.access(path.resolve().parent, os.W_OK):
        reason = f"the folder {str(path.parent)!r} does not exist or is not writable"
        raise FileError(f"Cannot write {str(path)!r}: {reason}.")
    kind = path.suffix.lower()
    if kind in (".htm", ".html"):
        required("matplotlib", "report", "A report")
    elif kind == ".csv":
        required("pandas", "pandas", "A .csv file")
    elif kind not in (".json", ".npz"):
        required("matplotlib", "plot", "A figure")


Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="Data files. `file.npz:key` is one array of a file, a folder all files in it, "
        "`months/*.csv` the files that match.",
    ),
]
AsJSON: TypeAlias = Annotated[bool, option("Print JSON.", False, "--json")]
StorePath: TypeAlias = Annotated[Path, option("The store, one SQLite file.", False, "--store")]
Tags: TypeAlias = Annotated[
    list[str] | None, option("A tag. May be repeated.", False, "--tag", metavar="KEY=VALUE")
]
_ROWS = "Draw N rows of each dataset first. `common`: as many as the smallest has."
Subsample: TypeAlias = Annotated[Any, option(_ROWS, parser=literal, metavar="N")]
CacheFolder: TypeAlias = Annotated[
    Path | None,
    _run("Cache folder.", "such as ~/.cache/unaligned", "--cache", envvar="UNALIGNED_CACHE"),
]


@dataclass(frozen=True)
class FileOptions:
    """How files are read."""

    group_by: Annotated[
        str | None, _file("Column or label array. Each of its values becomes a dataset.")
    ] = None
    columns: Annotated[str | None, _file("Columns to read from a table: `x,y,z`.")] = None
    use_rep: Annotated[str | None, _file("AnnData: an embedding in `obsm`: `X_pca`.")] = None
    layer: Annotated[str | None, _file("AnnData: a layer in place of `X`.")] = None
    var_names: Annotated[
        str | None,
        _file("AnnData: genes `a,b,c`, a file with one per line, or a column of `var`."),
    ] = None
    header: Annotated[
        bool | None, _file("Whether the first line of a text table is a header.", "detect")
    ] = None
    drop_non_numeric: Annotated[
        bool, _file("Drop columns that are not numeric.", False, "--drop-non-numeric")
    ] = False
    transpose: Annotated[bool, _file("Samples are columns.", False, "--transpose")] = False
    flatten: Annotated[bool, _file("Flatten images to rows.", False, "--flatten")] = False
    resize: Annotated[str | None, _file("Resize images: `32x32`.", metavar="WIDTHxHEIGHT")] = None
    kind: Annotated[str, _file("points, distances, affinity, spd or graph.", True)] = "points"
    preprocess: Annotated[str | None, _file("Steps in order: `log1p,pca:50`.")] = None
    nan_policy: Annotated[
        str, _file("Rows with NaN or infinity: `raise` an error, or `omit` them.", True)
    ] = "raise"

    @merged()
    def load(
        self,
        patterns: Sequence[str],
        *,
        short: bool = False,
        on_error: Callable[[UnalignedError], None] | None = None,
    ) -> dict[str, Dataset]:
        """Return the datasets in files, folders and glob patterns by name.

        With `short` the datasets of a single file are not named after it: `7` for `table:7`.
        `on_error` is called with errors of files, which are raised without it.
        """
        from .. import load_all
        from ..io.registry import joined, name_of, names_of, unique

        files = [file for pattern in patterns for file in _expand(pattern)]
        if on_error is not None:  # one bad file of a folder is one error
            files = [inside for file in files for inside in _contained(file)]
        _require_distinct(files)
        found: list[tuple[str, str, Dataset]] = []
        for file, own in zip(files, names_of(files), strict=True):
            usual = name_of(file)
            try:
                datasets = load_all(file, **self._arguments())
            except UnalignedError as error:
                if on_error is None:
                    raise
                on_error(error)
                continue
            for name, dataset in datasets.items():
                label = own + name.removeprefix(usual) if name.startswith(usual) else name
                if short and len(files) == 1 and len(datasets) > 1:
                    label = label.removeprefix(f"{own}:")
                found.append((file, label, dataset))
        counts = Counter(label for _, label, _ in found)
        names = unique(
            joined(f"{file}/{label}") if counts[label] > 1 else label for file, label, _ in found
        )
        pairs = zip(names, found, strict=True)
        return {name: dataset.with_options(name=name) for name, (_, _, dataset) in pairs}

    def origin_of(self, dataset: Dataset) -> dict[str, Any]:
        """Return the file of a dataset and how it was read, so that it can be read again."""
        path = os.path.abspath(dataset.metadata["path"])
        return {"path": path, "options": self._arguments()}

    def load_labelled(
        self, files: Sequence[str], option: str, column: str | None
    ) -> tuple[dict[str, Dataset], Any]:
        """Return the datasets by name, and the label of each row of each of them in a column.

        Without a column there are no labels, None.
        """
        from ..io.registry import joined, names_of, unique

        if column is None:
            return self.load(files, short=True), None
        if self.kind != "points":
            raise InputError(f"{option} needs rows that are points, not --kind {self.kind!r}.")
        columns: Any = tuple(filter(None, (self.group_by, column)))
        parts: dict[tuple[str, str | None], list[Dataset]] = {}
        try:
            loaded = replace(self, group_by=columns).load(files)
        except FileError as error:  # it names group_by, whichever column is missing
            text = str(error)
            if f"the column {column!r}" not in text or column == self.group_by:
                raise
            raise FileError(text.replace("group_by", option)) from error
        for dataset in loaded.values():
            known = dataset.metadata
            whole = None if self.group_by is None else str(known[self.group_by])
            place = ":".join(filter(None, (known["path"], known.get("key"))))
            parts.setdefault((place, whole), []).append(dataset)
        places = list(dict.fromkeys(place for place, _ in parts))
        short = dict(zip(places, names_of(places), strict=True))
        if len(places) == 1 and self.group_by is not None:
            short[places[0]] = ""
        names = unique(joined(short[place], whole) for place, whole in parts)
        datasets = [_one_of(own, name) for own, name in zip(parts.values(), names, strict=True)]
        labels = [
            [d.metadata[column] for d in own for _ in range(d.n_samples)] for own in parts.values()
        ]
        return {str(dataset.name): dataset for dataset in datasets}, labels

    def _arguments(self) -> dict[str, Any]:
        """Return the options that were given, as arguments of `ua.load_all`."""
        columns = words(self.columns)
        given = {
            **asdict(self),
            "columns": columns and tuple(int(c) if c.isdigit() else c for c in columns),
            "var_names": self.var_names and _gene_names(self.var_names),
            "preprocess": words(self.preprocess),
            "resize": self.resize and _image_size(self.resize),
        }
        return {
            name: value
            for name, value in given.items()
            if value is not None and (value is not False or name == "header")
        }


def _one_of(parts: Sequence[Dataset], name: str) -> Dataset:
    """Return the rows of several datasets of the same columns as one dataset."""
    from ..data.dataset import Dataset
    from ..rows.transforms import JoinedRows

    rows = JoinedRows([part.source for part in parts])
    names = parts[0].feature_names
    return Dataset(rows, name=name, preprocess=parts[0].preprocess, feature_names=names)


def _gene_names(text: str) -> str | list[str]:
    """Return the names in a list or a file of lines; one word is a column of var."""
    if not os.path.isfile(text):
        return words(text) or [] if "," in text else text
    try:
        lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise FileError(f"--var-names {text!r} cannot be read as lines of text.") from error
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise FileError(f"--var-names {text!r} contains only blank lines.")
    return names


def _image_size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise InputError(f"--resize {text!r} must be WIDTHxHEIGHT, such as 32x32.")
    return int(width), int(height)


def _expand(pattern: str) -> list[str]:
    """Return the files that match a pattern, for shells that do not expand it themselves."""
    from ..io.base import natural_key
    from ..io.registry import locate

    if not glob.has_magic(pattern) or os.path.lexists(locate(pattern).path):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True), key=natural_key)
    if not found:
        folder, remedy = os.path.dirname(pattern) or ".", "Check the name of the folder."
        if os.path.isdir(folder):
            remedy = f"Give {folder!r} to read all files in that folder."
        raise FileError(f"No file matches {pattern!r}. {remedy}")
    return found


def _require_distinct(files: Sequence[str]) -> None:
    """Raise if a file is given twice, in whatever spelling, or by its folder too."""
    from ..io.registry import locate

    known: dict[tuple[str, str, str | None], str] = {}
    for file in (inside for given in files for inside in _contained(given)):
        path, key = locate(file)
        # Links to files are files of their own: stores of versions link equal ones.
        place = os.path.realpath(path.parent), path.name, key
        if place in known:
            also = "" if known[place] == file else f", also as {known[place]!r}"
            raise InputError(f"{file!r} is given twice{also}. Give every file once.")
        known[place] = file


def _contained(file: str) -> list[str]:
    """Return the files in a folder of files, and otherwise the file itself."""
    from ..io.load import places
    from ..io.registry import locate

    try:
        found = places(locate(file))
    except UnalignedError:  # which is raised again when the file is read
        return [file]
    return [file] if found == [locate(file)] else [os.fspath(place.path) for place in found]


@dataclass(frozen=True)
class SignatureOptions:
    """How signatures are computed; None stands for the library's default."""

    n_eigenvalues: Annotated[
        int | None,
        _signature("Number of eigenvalues.", _FEWEST, "--n-eigenvalues", "-K", min=1),
    ] = None
    gamma: Annotated[
        Any,
        _signature(
            "Noise level, `auto` or `cutoff`.", f"{GAMMA:g}", parser=literal, metavar="NUMBER"
        ),
    ] = None
    solver: Annotated[str | None, choice(SOLVERS)] = None
    tol: Annotated[
        float | None,
        _signature("Wanted error of a signature.", f"{TOL:g}, more for large, noisy data"),
    ] = None
    bandwidth: Annotated[
        Any, choice(BANDWIDTH_RULES, ", or σ² itself", parser=literal, metavar="RULE")
    ] = None
    kernel: Annotated[str | None, choice(KERNELS)] = None
    metric: Annotated[str | None, _signature("A metric of scikit-learn.", "euclidean")] = None
    n_neighbors: Annotated[
        int | None, _signature("Keep the affinity of nearest neighbours only.", min=2)
    ] = None
    robust: Annotated[bool, _signature("Exclude gross outliers.", False, "--robust")] = False

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        items = asdict(self).items()
        return {name: value for name, value in items if value is not None and value is not False}


@dataclass(frozen=True)
class BlockSignatureOptions(SignatureOptions):
    """How signatures of blocks of rows are computed."""

    n_eigenvalues: Annotated[
        int | None,
        _signature("Number of eigenvalues.", "a third of a block", "--n-eigenvalues", "-K", min=1),
    ] = None


@dataclass(frozen=True)
class RunOptions:
    """Seed and parallelism, under the names that Python gives them."""

    rng: Annotated[int | None, _run("Random seed.", "0", "--seed", min=0)] = None
    n_jobs: Annotated[
        int | None,
        _run("Datasets at a time; -1 for one per core.", "auto", "--jobs", "-j"),
    ] = None


@dataclass(frozen=True)
class CacheOptions:
    """Where computed signatures are kept."""

    cache: CacheFolder = None
    no_cache: Annotated[bool, _run("Use no cache.", False, "--no-cache")] = False

    def open(self) -> Cache | None:
        """Return the cache, or None; a default folder that cannot be made is only a warning."""
        if self.no_cache:
            return None
        found = cache_in(self.cache)
        try:
            found.make()
        except FileError as error:
            if self.cache is not None:
                raise
            print_problem("Warning", f"Signatures are not cached. {error}")
            return None
        return found


def cache_in(folder: Path | None) -> Cache:
    """Return the cache in a folder, or in the default one."""
    from ..cache import Cache

    return Cache() if folder is None else Cache(folder)
