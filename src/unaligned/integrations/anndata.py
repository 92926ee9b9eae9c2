"""LES for AnnData, as scanpy has its tools: `ua.sc.tl`, `ua.sc.pl` and `ua.sc.get`.

A comparison of groups of cells is written to `adata.uns`, saved with the object, drawn from there,
and returned as a `Comparison`.

Examples
--------
>>> import anndata
>>> import numpy as np
>>> import unaligned as ua
>>> rng = np.random.default_rng(0)
>>> cells = rng.normal(size=(90, 5)) * np.repeat([[1, 1, 1, 1, 1], [1, 1, 3, 3, 3]], 45, axis=0)
>>> adata = anndata.AnnData(cells)
>>> adata.obs["day"] = np.repeat(["0", "7"], 45)
>>> ua.sc.tl.les(adata, group_by="day", n_eigenvalues=20)
>>> ua.sc.get.les(adata)
Comparison(les, 2 datasets, N=45, K=20, gamma=1e-08)
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _check, figures
from .._format import jsonable
from ..comparison import compare
from ..errors import InputError, InputTypeError, required, restoring
from ..result import Comparison
from ..serialization import from_parts, to_parts

# Formats that scanpy recognises at the end of `save`; others get the first.
_SUFFIXES = (".pdf", ".png", ".svg")
_WITHOUT_DISPLAY = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")  # backends


class _Output(NamedTuple):
    """Where a figure goes."""

    ax: Any
    figsize: tuple[float, float] | None
    show: bool | None
    save: bool | str | None
    return_fig: bool


class tl:  # noqa: N801
    """Tools: results are written to `adata.uns`."""

    @staticmethod
    def les(
        adata: Any,
        *,
        group_by: str | None = None,
        use_rep: str | None = None,
        layer: str | None = None,
        var_names: str | Sequence[str] | None = None,
        mask_obs: Any = None,
        distance: str = "les",
        key_added: str = "les",
        **options: Any,
    ) -> None:
        """Compare the groups of cells of an AnnData object, and write the result to `uns`.

        Parameters
        ----------
        adata
            The cells. `adata.uns[key_added]` gets `distances`, a table, `params`, and what
            `ua.sc.get.les` needs to return the whole `Comparison`.
        group_by
            The column of `obs` whose values are the datasets.
        use_rep, layer, var_names, mask_obs
            Which values of which cells, as in `ua.load`; by default `X`.
        distance
            Any name of `ua.available()`.
        key_added
            The key in `uns`.
        **options
            As for `ua.compare`, such as `n_eigenvalues`, `gamma`, `preprocess`, `min_samples`.
        """
        _require_anndata(adata)
        reading = {
            "use_rep": use_rep,
            "layer": layer,
            "var_names": var_names,
            "mask_obs": mask_obs,
        }
        given = {name: value for name, value in reading.items() if value is not None}
        if group_by is not None:
            given["group_by"] = group_by
        found = compare(adata, distance=distance, **given, **options)
        header, arrays = to_parts(found)
        params = {"group_by": group_by or options.get("groupby"), "distance": distance}
        params |= {name: value for name, value in given.items() if isinstance(value, str)}
        adata.uns[key_added] = {
            "distances": found.to_frame(),
            "params": {name: value for name, value in params.items() if value is not None},
            "comparison": {"header": json.dumps(jsonable(header, allow_nan=True)), **arrays},
        }


class get:  # noqa: N801
    """Results, read from `adata.uns`."""

    @staticmethod
    def les(adata: Any, key: str = "les") -> Comparison:
        """Return the comparison that `ua.sc.tl.les` wrote to `adata.uns[key]`.

        Parameters
        ----------
        adata
            The cells.
        key
            The `key_added` of `ua.sc.tl.les`.

        Returns
        -------
        Comparison
            With signatures or other descriptors, as `compare` returned it.
        """
        _require_anndata(adata)
        if key not in adata.uns:
            there = [name for name, entry in adata.uns.items() if _is_result(entry)]
            raise InputError(
                f"key={key!r} is not in adata.uns.{_check.did_you_mean(key, there)} Run "
                f"ua.sc.tl.les(adata, group_by=…, key_added={key!r}) first."
            )
        if not _is_result(adata.uns[key]):
            raise InputError(f"adata.uns[{key!r}] was not written by ua.sc.tl.les.")
        stored = dict(adata.uns[key]["comparison"])
        with restoring(f"adata.uns[{key!r}]"):
            header = json.loads(str(stored.pop("header")))
            return from_parts(header, {name: np.asarray(value) for name, value in stored.items()})


class pl:  # noqa: N801
    """Plots of results in `adata.uns`."""

    @staticmethod
    def les(
        adata: Any,
        color: Any = None,
        *,
        key: str = "les",
        method: str = "mds",
        cmap: Any = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
        ax: Any = None,
        show: bool | None = None,
        save: bool | str | None = None,
        return_fig: bool = False,
    ) -> Any:
        """Draw a map of the groups, similar ones near each other.

        Parameters
        ----------
        adata
            The cells that `ua.sc.tl.les` compared.
        color
            A column of `obs`: the value of each group, where its cells agree, else their mean; or
            one value per group as a list or dict. None colours by the groups.
        key
            Where `ua.sc.tl.les` wrote the result.
        method
            `mds`, `metric-mds` or `diffusion`.
        cmap, figsize, title, ax
            As in matplotlib.
        show
            Show the figure and return None; by default where the backend has a display.
        save
            True, or text that is appended to the name: `save="_days.png"` writes
            `figures/les_days.png`. A path with a folder is taken as it is.
        return_fig
            Return the figure.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure or None
            The axes; the figure with `return_fig`; None where it is shown.
        """
        found = get.les(adata, key)
        if isinstance(color, str):
            color = _values_of_groups(adata, key, color, found)
        options = {"color": color, "cmap": cmap, "method": method, "title": title}
        return _draw(
            found, "embedding", key, options, _Output(ax, figsize, show, save, return_fig)
        )

    @staticmethod
    def les_heatmap(
        adata: Any,
        *,
        key: str = "les",
        order: str = "given",
        annotate: bool | None = None,
        cmap: Any = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
        ax: Any = None,
        show: bool | None = None,
        save: bool | str | None = None,
        return_fig: bool = False,
    ) -> Any:
        """Draw the distances of the groups as a heat map.

        Parameters
        ----------
        adata
            The cells that `ua.sc.tl.les` compared.
        key
            As for `ua.sc.pl.les`.
        order
            `"given"`, or `"tree"` in the order of hierarchical clustering.
        annotate
            Write the numbers into the cells; None does so for up to 12 groups.
        cmap, figsize, title, ax, show, save, return_fig
            As for `ua.sc.pl.les`.

        Returns
        -------
        matplotlib.axes.Axes or matplotlib.figure.Figure or None
            As for `ua.sc.pl.les`.
        """
        found = get.les(adata, key)
        options = {"order": order, "annotate": annotate, "cmap": cmap, "title": title}
        output = _Output(ax, figsize, show, save, return_fig)
        return _draw(found, "heatmap", f"{key}_heatmap", options, output)


def _draw(
    found: Comparison,
    kind: str,
    name: str,
    options: dict[str, Any],
    output: _Output,
) -> Any:
    """Draw a comparison with pyplot, and show, save or return it as scanpy does."""
    plt = required("matplotlib.pyplot", "plot", "A figure")
    import matplotlib as mpl

    ax = output.ax
    if ax is None:
        alone: Any = figures.draw(found, kind, figsize=output.figsize, **options).figure
        figure: Any = plt.figure(figsize=alone.get_size_inches(), layout="constrained")
        ax = figure.add_subplot()
    axes = figures.draw(found, kind, ax=ax, **options)
    figure = axes.get_figure(root=True)
    if output.save:
        figures.save(figure, _target(name, output.save))
    if output.return_fig:
        return figure
    show = output.show
    if show is None:
        show = output.ax is None and mpl.get_backend().lower() not in _WITHOUT_DISPLAY
    if not show:
        return axes
    plt.show()
    return None


def _target(name: str, save: bool | str) -> Path:
    """Return the path that `save` means, as scanpy reads it."""
    text = _SUFFIXES[0] if save is True else str(save)
    if not text.endswith(_SUFFIXES):
        text += _SUFFIXES[0]
    if os.path.dirname(text):
        return Path(text)
    folder = Path("figures")
    folder.mkdir(exist_ok=True)
    return folder / f"{name}{text}"


def _values_of_groups(adata: Any, key: str, column: str, found: Comparison) -> Any:
    """Return the value of a column of obs for each group: the one there is, or the mean."""
    own = found.metadata.get(found.names[0], {})
    if column in own:
        return column
    _check_column(adata, column)
    group_by = adata.uns[key]["params"]["group_by"]
    labels = adata.obs[group_by].astype(str)
    values = {}
    for name in found.names:
        tag = str(found.metadata[name].get(group_by, name))
        inside = adata.obs.loc[labels.isin([name, tag]), column]
        known = inside.dropna().unique()
        if len(known) > 1 and inside.dtype.kind not in "iuf":
            raise InputError(
                f"color={column!r} has {len(known)} values in the group {name!r}. Choose a column "
                "with one value per group, or numbers, whose mean is taken."
            )
        values[name] = None if not len(known) else known[0] if len(known) == 1 else inside.mean()
    return {column: values}


def _check_column(adata: Any, column: str) -> None:
    columns = list(map(str, adata.obs.columns))
    if column not in columns:
        raise InputError(
            f"color={column!r} is not a column of obs.{_check.did_you_mean(column, columns)} "
            f"Columns: {', '.join(map(repr, columns[:20])) or 'none'}."
        )


def _is_result(entry: Any) -> bool:
    return hasattr(entry, "keys") and "comparison" in entry and "header" in entry["comparison"]


def _require_anndata(adata: Any) -> None:
    if not _check.is_anndata(adata):
        raise InputTypeError(f"adata must be an AnnData object, not {_check.shape_of(adata)}.")


__all__ = ["get", "pl", "tl"]
