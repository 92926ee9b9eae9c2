"""Malformed files that every reader and every command must reject.

`CASES` maps the name of a file to a function that returns its bytes or writes it. `place(name,
folder)` writes one and returns the argument for `ua.load` or the command line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import socket
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sample_files import (
    POINTS,
    VALID,
    feather,
    h5ad,
    hdf5,
    image_folder,
    npy,
    npz,
    parquet,
    safetensors,
    torch_file,
    zarr_folder,
)


class Payload:
    """A pickle that creates a folder when it is loaded."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.mkdir, (os.fspath(self.witness),)


def place(name, folder):
    """Write the malformed file `name` into `folder`; return its path, and part, as text."""
    file, _, key = name.partition(":")
    if file.endswith(".pt"):
        pytest.importorskip("torch")
    made = CASES[name](Path(folder) / file)
    if isinstance(made, bytes):
        (Path(folder) / file).write_bytes(made)
    return os.fspath(Path(folder) / name) if key else os.fspath(Path(folder) / file)


def header(text, size=0, version=1):
    """Return a .npy with this header text, followed by `size` zero bytes."""
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + b"\0" * size


def described(shape, descr="<f8", order=False):
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "."), data)
    return stream.getvalue()


def lying_archive(n_rows):
    """Return a small .npz that consistently claims to unpack to many rows."""
    start = header(described((n_rows, 1)))
    data, declared = bytearray(archive(x__npy=start + bytes(100))), len(start) + 8 * n_rows
    for signature, place_of_size in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = data.index(signature) + place_of_size
        data[start : start + 4] = struct.pack("<I", declared)
    return bytes(data)


def pickled(path):
    return pickle.dumps(Payload(path.parent / "witness"))


def object_array(path):
    return npy(np.array([[1, Payload(path.parent / "witness")]], dtype=object))


def text(*lines):
    return "\n".join([*lines, ""]).encode()


def half(name):
    def build(path):
        data = VALID[name]()
        middle = len(data) // 2
        if name.endswith((".csv", ".tsv")):  # within a row: a truncated number is a number too
            middle = max(data.rindex(mark, 0, middle) for mark in (b",", b"\t") if mark in data)
        return data[:middle]

    return build


def zipped_bomb(path):
    """Return 400 MB of zeros in 400 KB: a block of them, compressed once and repeated."""
    block = gzip.compress(b"0,0\n" * (1 << 22), compresslevel=6)
    return block * 24


def loop(path):
    path.symlink_to(path.name)


def fifo(path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("named pipes are POSIX")
    os.mkfifo(path)


def listening(path):
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("Unix sockets are not available")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        try:  # the path of a socket must be short
            os.chdir(path.parent)
            server.bind(path.name)
        finally:
            os.chdir(here)


def forbidden(path):
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        pytest.skip("root may read everything")
    path.write_bytes(VALID["points.npy"]())
    path.chmod(0)


def h5(build):
    """Return a builder of an HDF5 file that `build(file)` fills."""

    def write(path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            build(file, h5py, path)

    return write


def external_storage(file, h5py, path):
    secret = path.parent / "secret.bin"
    secret.write_bytes(bytes(80))
    file.create_dataset("x", (5, 2), dtype="f8", external=[(os.fspath(secret), 0, 80)])


def external_link(file, h5py, path):
    with h5py.File(path.parent / "other.hdf5", "w") as other:
        other["x"] = POINTS
    file["x"] = h5py.ExternalLink("other.hdf5", "/x")


def virtual(file, h5py, path):
    layout = h5py.VirtualLayout(shape=(12, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("other.hdf5", "x", shape=(12, 3))
    file.create_virtual_dataset("x", layout)


def cells(**changes):
    """Return a builder of an .h5ad with a changed sparse X."""

    def damage(file):
        for part, value in changes.items():
            if part in ("shape", "encoding"):
                name = "shape" if part == "shape" else "encoding-type"
                file["X"].attrs[name] = value
            else:
                del file["X"][part]
                if value is not None:
                    file["X"][part] = value

    return lambda path: h5ad(damage=damage)


def zarr_with(**changes):
    """Return a builder of a Zarr version 2 folder with changed metadata."""

    def build(path):
        zarr_folder(path, version=2)
        file = path / "x" / ".zarray"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return build


def pickling_zarr(path):
    """Write a Zarr array whose chunks are pickles and whose metadata name the pickle codec."""
    zarr_with(filters=[{"id": "pickle"}], compressor=None)(path)
    for chunk in (path / "x").glob("[0-9]*"):
        chunk.write_bytes(pickled(path))


def consolidated_zarr(path):
    pickling_zarr(path)
    metadata = {"x/.zarray": json.loads((path / "x" / ".zarray").read_text())}
    metadata["x/.zarray"]["filters"] = None
    (path / ".zmetadata").write_text(
        json.dumps({"zarr_consolidated_format": 1, "metadata": metadata})
    )


def broken_chunk(path):
    zarr_folder(path)
    for chunk in (path / "x" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"not a chunk")


def zarr_json(content):
    def build(path):
        path.mkdir()
        (path / "zarr.json").write_text(content)

    return build


def images(change):
    def build(path):
        image_folder(path)
        change(path)

    return build


def cut_image(path):
    data = (path / "2.png").read_bytes()
    (path / "2.png").write_bytes(data[: len(data) - 40])


def other_size(path):
    from PIL import Image

    Image.new("RGB", (9, 9)).save(path / "9.png")


def huge_image(path):
    """Write a PNG that claims to have 60,000 × 60,000 pixels."""
    from zlib import crc32

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    (path / "9.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    )


def folder(path):
    path.mkdir()


def folder_of_text(path):
    path.mkdir()
    (path / "notes.md").write_text("nothing here")


def tensor_file(name, shape, offsets, kind="F64", length=None):
    metadata = json.dumps(
        {name: {"dtype": kind, "shape": shape, "data_offsets": offsets}}
    ).encode()
    size = struct.pack("<Q", len(metadata) if length is None else length)
    return lambda path: size + metadata + bytes(96)


def expanded(torch):
    """Return a tensor of 8 TB that repeats one number by its strides."""
    return torch.zeros(1, dtype=torch.float64).expand(1_000_000, 1_000_000)


def ply_header(*lines, body=b"0 0 0\n"):
    return lambda path: text("ply", *lines, "end_header") + body


# Rejected by `load` because they have two arrays, which `load_all` and `compare` accept.
SEVERAL = ("several.npz", "several.h5", "several.pt")

_XYZ = ("property float x", "property float y", "property float z")
_WRONG = b"This is a letter, not data.\nIt has two lines.\n"

CASES = {
    # Every format: empty, truncated, of other content.
    **{f"zero.{name.partition('.')[2]}": lambda path: b"" for name in VALID},
    **{f"half.{name.partition('.')[2]}": half(name) for name in VALID if ".obj" not in name},
    **{f"letter.{name.partition('.')[2]}": lambda path: _WRONG for name in VALID},
    **{
        f"noise.{name.partition('.')[2]}": lambda path: np.random.default_rng(1).bytes(5000)
        for name in VALID
    },
    # Not plain files.
    "loop.npy": loop,
    "dangling.npy": lambda path: path.symlink_to("nowhere.npy"),
    "pipe.npy": fifo,
    "pipe.csv": fifo,
    "socket.npy": listening,
    "forbidden.npy": forbidden,
    "missing.npy": lambda path: None,
    "missing.npz:key": lambda path: None,
    "folder.npy": folder,
    "file.zarr": lambda path: b"a file",
    "empty folder": folder,
    "folder of text": folder_of_text,
    "unknown.xyz123": lambda path: b"1 2 3",
    "no suffix": lambda path: b"1 2 3",
    "photo.png": lambda path: b"\x89PNG\r\n\x1a\n",
    "ünïcödé ☃.npy": lambda path: b"snow",
    # .npy
    "pickle.npy": pickled,
    "objects.npy": object_array,
    "scalar.npy": lambda path: npy(np.array(3.0)),
    "flat.npy": lambda path: npy(np.arange(5.0)),
    "cube.npy": lambda path: npy(np.zeros((2, 3, 4))),
    "no rows.npy": lambda path: npy(np.zeros((0, 3))),
    "no columns.npy": lambda path: npy(np.zeros((3, 0))),
    "all nan.npy": lambda path: npy(np.full((3, 2), np.nan)),
    "one nan.npy": lambda path: npy(np.where(np.eye(3) > 0, np.nan, 1.0)),
    "infinite.npy": lambda path: npy(np.full((3, 2), np.inf)),
    "words.npy": lambda path: npy(np.array([["a", "b"]])),
    "complex.npy": lambda path: npy(POINTS * 1j),
    "records.npy": lambda path: npy(np.zeros((3, 2), dtype=[("a", "f8")])),
    "dates.npy": lambda path: npy(np.zeros((3, 2), dtype="datetime64[s]")),
    "future.npy": lambda path: b"\x93NUMPY\x09\x00" + b"\0" * 100,
    "snow records.npy": lambda path: header(described((2,), "<f8"), 16, version=3),
    "huge shape.npy": lambda path: header(described((10**9, 10**9))),
    "overflow.npy": lambda path: header(described((2**62, 2**62)), 8),
    "negative.npy": lambda path: header(described((-1, 3)), 24),
    "two shapes.npy": lambda path: npy(POINTS) + npy(POINTS),
    "short.npy": lambda path: npy(POINTS)[:-1],
    "code header.npy": lambda path: header("__import__('os').mkdir('witness')\n", 24),
    "wrong keys.npy": lambda path: header("{'descr': '<f8'}\n", 24),
    "unknown type.npy": lambda path: header(described((2, 2), "<q9"), 32),
    "long header.npy": lambda path: header("{" + " " * 60_000 + "}\n", 8),
    "nested header.npy": lambda path: header("(" * 9_000 + ")" * 9_000, 8),
    "object lie.npy": lambda path: header(described((1, 2), "|O"), 16),
    # .npz
    "several.npz": lambda path: npz(a=POINTS, b=POINTS),
    "several.npz:c": lambda path: npz(a=POINTS, b=POINTS),
    "objects.npz": lambda path: archive(x__npy=object_array(path)),
    "pickle.npz": lambda path: archive(x__npy=pickled(path)),
    "only pickle.npz": pickled,
    "scalar.npz": lambda path: npz(x=np.array(1.0)),
    "text inside.npz": lambda path: archive(notes__txt=b"hello"),
    "no members.npz": lambda path: archive(),
    "bad member.npz": lambda path: archive(x__npy=b"hello there, no array"),
    "short member.npz": lambda path: archive(x__npy=npy(POINTS)[:-8]),
    "bomb.npz": lambda path: lying_archive(2**29 - 100),
    "wrong sum.npz": lambda path: npz(x=POINTS).replace(
        b"\x00\x00\x00\x00x.npy", b"\1\2\3\4x.npy"
    ),
    "flat.npz": lambda path: npz(x=np.arange(4)),
    "words.npz:names": lambda path: npz(x=POINTS, names=np.array(["a", "b"])),
    # .csv and .tsv
    "ragged.csv": lambda path: text("x,y", "1,2", "3,4,5", "6,7"),
    "short row.csv": lambda path: text("x,y,z", "1,2,3", "4,5", "6,7,8"),
    "words.csv": lambda path: text("name,place", "ann,here", "bob,there"),
    "one word.csv": lambda path: text("x,y", "1,2", "3,oops"),
    "header only.csv": lambda path: text("x,y,z"),
    "blank.csv": lambda path: b"\n\n  \n",
    "nan column.csv": lambda path: text("x,y", "1,", "2,", "3,"),
    "missing value.csv": lambda path: text("x,y", "1,2", "3,", "5,6"),
    "latin.csv": lambda path: "größe,x\n1,2\n".encode("latin-1"),
    "utf16.csv": lambda path: "x,y\n1,2\n".encode("utf-16"),
    "nul.csv": lambda path: b"x,y\n1,\x002\n",
    "quote.csv": lambda path: text("x,y", '"1,2', "3,4"),
    "only names.csv": lambda path: text(",", "a,", "b,"),
    "part.csv:x": lambda path: text("x,y", "1,2"),
    "pickle.csv": pickled,
    "ragged.tsv": lambda path: text("x\ty", "1\t2", "3"),
    "bomb.csv.gz": zipped_bomb,
    "tail.csv.gz": lambda path: gzip.compress(text("x,y", "1,2")) + b"garbage",
    "wrong sum.csv.gz": lambda path: gzip.compress(text("x,y", "1,2"))[:-8] + bytes(8),
    # .parquet and .feather
    "words.parquet": lambda path: parquet(name=["a", "b"]),
    "mixed.parquet": lambda path: parquet(name=["a", "b"], x=[1.0, 2.0]),
    "no rows.parquet": lambda path: parquet(x=np.zeros(0)),
    "nan.parquet": lambda path: parquet(x=[1.0, np.nan]),
    "footer.parquet": lambda path: parquet()[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "magic.parquet": lambda path: b"PAR1PAR1",
    "words.feather": lambda path: feather(name=["a", "b"]),
    "no rows.feather": lambda path: feather(x=np.zeros(0)),
    # .h5, .h5ad
    "no arrays.h5": h5(lambda file, h5py, path: file.create_group("g")),
    "several.h5": lambda path: hdf5(x=POINTS, y=POINTS),
    "missing.h5:y": lambda path: hdf5(x=POINTS),
    "words.h5": h5(lambda file, h5py, path: file.create_dataset("s", data=["a", "b"])),
    "scalar.h5": lambda path: hdf5(x=1.0),
    "flat.h5": lambda path: hdf5(x=np.arange(4.0)),
    "null.h5": h5(lambda file, h5py, path: file.create_dataset("x", data=h5py.Empty("f8"))),
    "vast.h5": h5(
        lambda file, h5py, path: file.create_dataset("x", (10**9, 10**4), "f8", chunks=(10, 10))
    ),
    "external link.h5": h5(external_link),
    "external link.h5:x": h5(external_link),
    "external storage.h5": h5(external_storage),
    "virtual.h5": h5(virtual),
    "soft link.h5:x": h5(
        lambda file, h5py, path: (
            file.__setitem__("y", POINTS),
            file.__setitem__("x", h5py.SoftLink("/x")),
        )
    ),
    "no matrix.h5ad": lambda path: hdf5(obs__day=np.arange(3)),
    "missing.h5ad:obsm/X_umap": lambda path: h5ad(),
    "indices outside.h5ad": cells(indices=np.full(int((POINTS > 0).sum()), 99)),
    "indices negative.h5ad": cells(indices=np.full(int((POINTS > 0).sum()), -1)),
    "indptr down.h5ad": cells(indptr=np.arange(13)[::-1].copy()),
    "indptr long.h5ad": cells(indptr=np.arange(40)),
    "no indptr.h5ad": cells(indptr=None),
    "data short.h5ad": cells(data=np.ones(2)),
    "shape wrong.h5ad": cells(shape=(12, 1)),
    "shape huge.h5ad": cells(shape=(2**60, 2**60)),
    "shape words.h5ad": cells(shape="twelve"),
    "encoding.h5ad": cells(
        encoding="coo_matrix",
        shape=(12, 12),
        indptr=np.arange(13),
        indices=np.arange(12),
        data=np.ones(12),
    ),
    "words.h5ad": cells(data=np.full(int((POINTS > 0).sum()), b"a")),
    # .zarr
    "empty.zarr": folder,
    "pickle.zarr": pickling_zarr,
    "consolidated.zarr": consolidated_zarr,
    "objects.zarr": zarr_with(dtype="|O", filters=[{"id": "pickle"}]),
    "unknown codec.zarr": zarr_with(compressor={"id": "mystery"}),
    "vast.zarr": zarr_with(shape=[10**9, 10**4]),
    "vast chunk.zarr": zarr_with(shape=[10**7, 10**6], chunks=[10**7, 10**6]),
    "many chunks.zarr": zarr_with(shape=[10**7, 2], chunks=[1, 1]),
    "negative.zarr": zarr_with(shape=[-3, 2]),
    "type.zarr": zarr_with(dtype="<q9"),
    "shape.zarr": zarr_with(shape="three"),
    "broken chunk.zarr": broken_chunk,
    "no json.zarr": zarr_json("{ this is no json"),
    "list.zarr": zarr_json("[1, 2, 3]"),
    "half json.zarr": zarr_json('{"node_type": "array", "zarr_format": 3}'),
    "deep json.zarr": zarr_json("[" * 100_000),
    "missing.zarr:y": zarr_folder,
    # .mtx
    "complex.mtx": lambda path: text("%%MatrixMarket matrix array complex general", "1 1", "1 2"),
    "entries.mtx": lambda path: text(
        "%%MatrixMarket matrix coordinate real general", "3 3 999999999999", "1 1 1.0"
    ),
    "vast.mtx": lambda path: text(
        "%%MatrixMarket matrix coordinate real general", f"{10**15} 3 1", "1 1 1.0"
    ),
    "outside.mtx": lambda path: text(
        "%%MatrixMarket matrix coordinate real general", "3 3 1", "9 9 1.0"
    ),
    "zero index.mtx": lambda path: text(
        "%%MatrixMarket matrix coordinate real general", "3 3 1", "0 1 1.0"
    ),
    "cut number.mtx": lambda path: (
        text("%%MatrixMarket matrix coordinate real general", "3 3 2", "1 1 1.0", "2 2 7.5E-")[:-1]
        + b"\n9"
    ),
    "nul.mtx": lambda path: VALID["points.mtx"]().replace(b" ", b"\0", 9),
    "word.mtx": lambda path: text(
        "%%MatrixMarket matrix coordinate real general", "3 3 1", "1 1 one"
    ),
    "sizes.mtx": lambda path: text("%%MatrixMarket matrix coordinate real general", "3 -3 1", "1"),
    "no sizes.mtx": lambda path: text("%%MatrixMarket matrix coordinate real general"),
    "vector.mtx": lambda path: text("%%MatrixMarket vector coordinate real general", "3 1", "1 1"),
    "no rows.mtx": lambda path: text("%%MatrixMarket matrix coordinate real general", "0 0 0"),
    # .pt, .safetensors
    "pickle.pt": pickled,
    "payload.pt": lambda path: torch_file(lambda torch: Payload(path.parent / "witness")),
    "numbers.pt": lambda path: torch_file(lambda torch: {"epoch": 3}),
    "expanded.pt": lambda path: torch_file(expanded),
    "several.pt": lambda path: torch_file(lambda torch: [torch.eye(2), torch.eye(3)]),
    "scalar.pt": lambda path: torch_file(lambda torch: torch.tensor(1.0)),
    "complex.pt": lambda path: torch_file(lambda torch: torch.eye(2, dtype=torch.complex64)),
    "missing.pt:y": lambda path: torch_file(),
    "offsets.safetensors": tensor_file("x", [4, 3], [0, 10**9]),
    "shape.safetensors": tensor_file("x", [10**9, 10**9], [0, 96]),
    "negative.safetensors": tensor_file("x", [-4, -3], [0, 96]),
    "kind.safetensors": tensor_file("x", [4, 3], [0, 96], kind="F65"),
    "length.safetensors": tensor_file("x", [4, 3], [0, 96], length=2**63),
    "missing.safetensors:y": lambda path: safetensors(),
    # Meshes
    "no vertices.ply": ply_header("format ascii 1.0", "element vertex 0", *_XYZ),
    "vast.ply": ply_header("format ascii 1.0", f"element vertex {10**12}", *_XYZ),
    "vast binary.ply": ply_header(
        "format binary_little_endian 1.0", f"element vertex {10**14}", *_XYZ
    ),
    "two axes.ply": ply_header("format ascii 1.0", "element vertex 1", *_XYZ[:2]),
    "format.ply": ply_header("format middle_endian 1.0", "element vertex 1", *_XYZ),
    "kind.ply": ply_header("format ascii 1.0", "element vertex 1", "property quad x", *_XYZ[1:]),
    "face first.ply": ply_header("format ascii 1.0", "element face 1", *_XYZ),
    "word.ply": ply_header("format ascii 1.0", "element vertex 1", *_XYZ, body=b"a b c\n"),
    "no end.ply": lambda path: text("ply", "format ascii 1.0", "element vertex 1", *_XYZ),
    "count.off": lambda path: text("OFF", "99 1 0", "0 0 0"),
    "word.off": lambda path: text("OFF", "1 0 0", "a b c"),
    "pair.off": lambda path: text("OFF", "1 0 0", "1 2"),
    "sizes.off": lambda path: text("OFF", "many 0 0", "0 0 0"),
    "binary.off": lambda path: b"OFF BINARY\n" + struct.pack(">3I", 2**31, 1, 0),
    "faces only.obj": lambda path: text("f 1 2 3"),
    "pair.obj": lambda path: text("v 1 2"),
    "word.obj": lambda path: text("v a b c"),
    "nan.obj": lambda path: text("v nan nan nan", "v 1 2 3"),
    "count.stl": lambda path: bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50),
    "no faces.stl": lambda path: bytes(84),
    "open.stl": lambda path: text("solid x", "facet normal 0 0 1", "outer loop", "vertex 1 2 3"),
    "word.stl": lambda path: text("solid x", *["vertex a b c"] * 3, "endsolid x"),
    # Folders of images
    "cut image": images(cut_image),
    "other size": images(other_size),
    "huge image": images(huge_image),
    "false image": images(lambda path: (path / "9.png").write_bytes(_WRONG)),
    "zero image": images(lambda path: (path / "9.png").write_bytes(b"")),
    "image loop": images(lambda path: (path / "9.png").symlink_to("9.png")),
    "image pipe": images(lambda path: fifo(path / "9.png")),
}
