"""A valid file of every format, written by the usual library."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pytest

POINTS = np.random.default_rng(0).normal(size=(12, 3))
DAYS = np.repeat(["D0", "D2", "D10"], 4)
COLUMNS = {"x": POINTS[:, 0], "day": DAYS, "y": POINTS[:, 1], "z": POINTS[:, 2]}


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **options)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def csv(separator=","):
    rows = [separator.join(map(repr, row)) for row in POINTS.tolist()]
    return "\n".join([separator.join("xyz"), *rows, ""]).encode()


def frame(**columns):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(columns or dict(zip("xyz", POINTS.T, strict=True)))


def parquet(**columns):
    pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    frame(**columns).to_parquet(stream)
    return stream.getvalue()


def feather(**columns):
    pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    frame(**columns).to_feather(stream)
    return stream.getvalue()


def hdf5(**arrays):
    h5py = pytest.importorskip("h5py")
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for name, values in (arrays or {"x": POINTS}).items():
            file[name.replace("__", "/")] = values
    return stream.getvalue()


def h5ad(sparse=True, damage=None):
    """Return a file in AnnData's layout; `damage` may change its parts."""
    h5py = pytest.importorskip("h5py")
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        if sparse:
            from scipy import sparse as matrices

            csr = matrices.csr_array(np.where(POINTS > 0, POINTS, 0.0))
            group = file.create_group("X")
            group.attrs.update({"encoding-type": "csr_matrix", "shape": csr.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(csr, part)
        else:
            file["X"] = POINTS
        file["obsm/X_pca"] = POINTS[:, :2]
        file["var/_index"] = ["x", "y", "z"]
        names, codes = np.unique(DAYS, return_inverse=True)
        file["obs/day/codes"], file["obs/day/categories"] = codes, names.astype(bytes)
        if damage is not None:
            damage(file)
    return stream.getvalue()


def annotated(frame):
    """Return a table as AnnData, with columns as genes."""
    pandas, anndata = pytest.importorskip("pandas"), pytest.importorskip("anndata")
    var = pandas.DataFrame(index=list(map(str, frame.columns)))
    obs = pandas.DataFrame({"day": DAYS}, index=[f"cell{i}" for i in range(len(frame))])
    return anndata.AnnData(frame.to_numpy(), obs=obs, var=var)


def zarr_folder(path, version=3):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    group.create_array("x", data=POINTS, chunks=(5, 3))


def mtx(sparse=True):
    from scipy import io as scipy_io
    from scipy import sparse as matrices

    stream = io.BytesIO()
    scipy_io.mmwrite(stream, matrices.coo_array(POINTS) if sparse else POINTS)
    return stream.getvalue()


def torch_file(value=None, **options):
    torch = pytest.importorskip("torch")
    stream = io.BytesIO()
    torch.save({"x": torch.tensor(POINTS)} if value is None else value(torch), stream, **options)
    return stream.getvalue()


def safetensors(**arrays):
    library = pytest.importorskip("safetensors.numpy")
    return library.save(arrays or {"x": POINTS})


def ply(binary=True, order="little"):
    form = f"binary_{order}_endian" if binary else "ascii"
    head = (
        f"ply\nformat {form} 1.0\ncomment made here\nelement vertex {len(POINTS)}\n"
        "property float x\nproperty uchar red\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    ).encode()
    sign = "<" if order == "little" else ">"
    if binary:
        rows = [struct.pack(f"{sign}fBff", x, 7, y, z) for x, y, z in POINTS]
        return head + b"".join(rows) + struct.pack(f"{sign}Biii", 3, 0, 1, 2)
    rows = [f"{np.float32(x)} 7 {np.float32(y)} {np.float32(z)}" for x, y, z in POINTS]
    return head + "\n".join([*rows, "3 0 1 2", ""]).encode()


def off(binary=False):
    if binary:
        sizes = struct.pack(">3I", len(POINTS), 1, 0)
        return b"OFF BINARY\n" + sizes + POINTS.astype(">f4").tobytes() + b"\0" * 20
    rows = "\n".join(" ".join(map(repr, row)) for row in POINTS.tolist())
    return f"OFF\n# made here\n{len(POINTS)} 1 0\n{rows}\n3 0 1 2\n".encode()


def obj():
    rows = "\n".join("v " + " ".join(map(repr, row)) for row in POINTS.tolist())
    return f"# made here\no thing\n{rows}\nvn 0 0 1\nf 1 2 3\n".encode()


def stl(binary=True):
    corners = POINTS.reshape(-1, 3, 3)[[0, 1, 2, 3, 0]]  # the first triangle twice
    if binary:
        record = np.zeros(
            len(corners), dtype=[("n", "<f4", 3), ("c", "<f4", (3, 3)), ("s", "<u2")]
        )
        record["c"] = corners
        return b"\0" * 80 + struct.pack("<I", len(corners)) + record.tobytes()
    facets = [
        "facet normal 0 0 1\nouter loop\n"
        + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in face.tolist())
        + "endloop\nendfacet\n"
        for face in corners
    ]
    return ("solid thing\n" + "".join(facets) + "endsolid thing\n").encode()


def image_folder(path, count=4, size=(5, 4)):
    image = pytest.importorskip("PIL.Image")
    Path(path).mkdir()
    rng = np.random.default_rng(0)
    for i in range(count):
        pixels = rng.integers(0, 256, size=(size[1], size[0], 3), dtype=np.uint8)
        image.fromarray(pixels).save(Path(path, f"{i}.png"))


# A valid file of each suffix.
VALID = {
    "points.npy": lambda: npy(POINTS),
    "points.npz": lambda: npz(x=POINTS),
    "points.csv": csv,
    "points.tsv": lambda: csv("\t"),
    "points.csv.gz": lambda: gzip.compress(csv()),
    "points.parquet": parquet,
    "points.feather": feather,
    "points.h5": hdf5,
    "points.h5ad": h5ad,
    "points.mtx": mtx,
    "points.mtx.gz": lambda: gzip.compress(mtx()),
    "points.pt": torch_file,
    "points.safetensors": safetensors,
    "points.ply": ply,
    "points.off": off,
    "points.obj": obj,
    "points.stl": stl,
}

# The same points, each with a day.
LABELLED = {
    "t.csv": lambda: frame(**COLUMNS).to_csv(index=False).encode(),
    "t.tsv": lambda: frame(**COLUMNS).to_csv(index=False, sep="\t").encode(),
    "t.parquet": lambda: parquet(**COLUMNS),
    "t.feather": lambda: feather(**COLUMNS),
    "t.npz": lambda: npz(values=POINTS, day=DAYS),
    "t.h5": lambda: hdf5(values=POINTS, day=DAYS.astype(bytes)),
    "t.h5ad": lambda: h5ad(sparse=False),
}
