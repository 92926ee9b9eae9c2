"""What works without any extra, and how the rest says which one it needs.

`make dist` runs this script where nothing but the core is installed, and
`tests/test_packaging.py` with the packages of the extras hidden.
"""

import inspect
import pydoc
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import unaligned as ua
from unaligned.cli import main
from unaligned.errors import MissingExtraError

EXTRAS = ("anndata", "dask", "gudhi", "h5py", "llvmlite", "matplotlib", "numba", "ot", "pandas")
EXTRAS += ("PIL", "pyarrow", "ripser", "robust_laplacian", "safetensors", "torch", "zarr")


def command(*words: object, code: int = 0) -> None:
    """Run `unaligned` with these arguments and compare its exit code."""
    sys.argv = ["unaligned", *map(str, words)]
    try:
        main()
        ended = 0
    except SystemExit as stop:
        ended = int(stop.code or 0)
    assert ended == code, f"{words}: exit code {ended}"


def default_calls(clouds: dict[str, np.ndarray], folder: Path) -> ua.Comparison:
    """Call what needs nothing more than the core."""
    found = ua.compare(clouds, inference=True, rng=0)
    assert "ball" in str(found)
    assert "<pre>" in found._repr_html_()
    ball = clouds["ball"]
    assert ua.signature(ball).n_samples == len(ball) > 500  # the NumPy loops, beyond 500 rows
    assert ua.distance(ball, clouds["disc"]) > 0
    assert found.embed().shape == (3, 2)
    assert len(found.linkage()) == 2
    found.save(folder / "found.npz")
    assert ua.Comparison.load(folder / "found.npz")["ball", "disc"] == found["ball", "disc"]
    store = ua.Store(folder / "store.db")
    store.add(ua.signature(ball, n_eigenvalues=20), name="ball")
    assert store.nearest(clouds["disc"], k=1)
    ua.permutation_test(ball, clouds["disc"], rng=0)
    str(ua.explain(ball, clouds["disc"], n_repeats=2, rng=0))
    str(ua.diagnose(ball))
    str(ua.estimate(ball))
    ua.DriftMonitor(ball, rng=0).check(ball[:150])
    return found


def commands(clouds: dict[str, np.ndarray], folder: Path) -> None:
    """Run the commands that need nothing more, and some that do."""
    files = [folder / f"{name}.npy" for name in clouds]
    for file, cloud in zip(files, clouds.values(), strict=True):
        np.save(file, cloud)
    table = folder / "table.csv"
    np.savetxt(table, clouds["line"], delimiter=",")
    own = ("--cache", folder / "cache")
    command("compare", *files, "--out", folder / "found.json", *own)
    command("info", *files)
    command("test", *files[:2], code=3)
    command("describe", *files, "--store", folder / "refs.db")
    command("nearest", files[0], "--store", folder / "refs.db")
    command("list", "--store", folder / "refs.db")
    command("distances")
    for more in (["--plot", "a.png"], ["--report", "a.html"], ["--out", "a.csv"]):
        command("compare", *files, more[0], folder / more[1], *own, code=1)
    command("compare", table, files[0], *own, code=1)


def named_extras(found: ua.Comparison, clouds: dict[str, np.ndarray], folder: Path) -> None:
    """Call what needs an extra."""
    table = folder / "line.csv"
    np.savetxt(table, clouds["line"], delimiter=",")
    calls = {
        "pandas": [found.to_frame, ua.available, lambda: found["ball"], lambda: ua.load(table)],
        "plot": [found.plot, ua.diagnose(clouds["ball"]).plot],
        "report": [lambda: found.report(folder / "report.html")],
        "transport": [lambda: ua.compare(clouds, distance="gromov-wasserstein")],
        "topology": [lambda: ua.compare(clouds, distance="bottleneck-h1")],
        "dask": [lambda: ua.compare(clouds, engine="tcp://127.0.0.1:9")],
        "torch": [lambda: ua.torch.signature],
    }
    for extra, function in ((name, call) for name in calls for call in calls[name]):
        message = "nothing was raised"
        try:
            function()
        except (MissingExtraError, AttributeError) as error:
            message = str(error)
        assert f"unaligned[{extra}]" in message, f"{extra}: {message}"


def inspection() -> None:
    """Look at the package as help pages and debuggers do."""
    assert not hasattr(ua, "torch")
    assert "torch" not in dir(ua)
    assert "compare" in dict(inspect.getmembers(ua))
    assert "available()" in pydoc.render_doc(ua)
    with suppress(MissingExtraError):
        from unaligned import torch

        raise AssertionError(f"{torch} was imported")


def run() -> None:
    """Run all parts."""
    installed = [name for name in EXTRAS if find_spec(name) is not None]
    assert not installed, installed
    rng = np.random.default_rng(0)
    shapes = {"line": 1, "disc": 2, "ball": 3}
    clouds = {name: rng.normal(size=(600, d)) for name, d in shapes.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = default_calls(clouds, folder)
        commands(clouds, folder)
        named_extras(found, clouds, folder)
    inspection()
    print("the core works without its extras")


if __name__ == "__main__":
    run()
