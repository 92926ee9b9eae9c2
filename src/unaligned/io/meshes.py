"""Meshes and point clouds, read as their vertices: `.ply`, `.off`, `.obj`, `.stl`."""

import numpy as np

from .._check import FloatArray
from ..errors import FileError
from .base import Contents, Request

_PLY_TYPES = {
    **{"char": "int8", "short": "int16", "int": "int32", "float": "float32"},
    **{"uchar": "uint8", "ushort": "uint16", "uint": "uint32", "double": "float64"},
}


def _read_bytes(request: Request) -> bytes:
    request.require_memory(4 * request.size)  # text is split into words
    return request.path.read_bytes()


def _vertices(rows: list[list[bytes]]) -> FloatArray:
    """Return lines of three words as an array, (n_vertices, 3)."""
    if not rows:
        raise FileError("The file contains no vertices.")
    for row in rows:
        if len(row) != 3:
            raise FileError(f"A vertex has {len(row)} numbers, expected 3.")
    return _numbers([word for row in rows for word in row]).reshape(-1, 3)


def _numbers(words: list[bytes]) -> FloatArray:
    try:
        return np.array([float(word) for word in words], dtype=np.float64)
    except ValueError as error:
        raise FileError(f"A vertex contains something else than numbers ({error}).") from error


def _require_length(n_announced: int, n_stored: int) -> None:
    if not 0 < n_announced <= n_stored:
        raise FileError(
            f"The header announces {n_announced} vertices, and the file has room for {n_stored}: "
            "it is truncated, damaged or empty."
        )


def _count(word: bytes) -> int:
    if not word.isdigit() or len(word) > 15:
        shown = word[:20].decode("ascii", "replace")
        raise FileError(f"The number of vertices is {shown!r}, not a whole number.")
    return int(word)


def read_obj(request: Request) -> Contents:
    """Return the lines `v x y z` of a Wavefront file."""
    lines = _read_bytes(request).replace(b"\\\n", b" ").splitlines()
    rows = [line.split()[1:4] for line in lines if line.lstrip()[:2] in (b"v ", b"v\t")]
    return Contents.single(_vertices(rows))


def read_off(request: Request) -> Contents:
    """Return the vertices of an Object File Format file, text or binary."""
    data = _read_bytes(request)
    first, _, rest = data.partition(b"\n")
    if first.split()[1:2] == [b"BINARY"]:
        n_vertices = int.from_bytes(rest[:4], "big")
        _require_length(n_vertices, len(rest) // 12 - 1)
        values = np.frombuffer(rest, ">f4", count=3 * n_vertices, offset=12)
        return Contents.single(values.astype(np.float64).reshape(-1, 3))
    lines = [line.partition(b"#")[0].split() for line in data.splitlines()]
    title, *body = [words for words in lines if words] or [[b""]]
    if not title[0].endswith(b"OFF") and not title[0].startswith(b"OFF"):
        raise FileError("The file does not start with OFF.")
    # ModelNet writes the sizes right after the word: "OFF8 6 0".
    sizes = [word for word in (title[0].rpartition(b"OFF")[2], *title[1:]) if word]
    if not sizes and body:
        sizes, *body = body
    n_vertices = _count(sizes[0] if sizes else b"")
    _require_length(n_vertices, len(body))
    return Contents.single(_vertices([words[:3] for words in body[:n_vertices]]))


def read_stl(request: Request) -> Contents:
    """Return the corners of a stereolithography file, text or binary, each corner once."""
    data = _read_bytes(request)
    n_faces = int.from_bytes(data[80:84], "little")
    n_bytes = 84 + 50 * n_faces
    if len(data) == n_bytes and n_faces:
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
        corners = np.frombuffer(data, record, offset=84)["corners"].reshape(-1, 3)
    elif data[:5].lower() == b"solid":
        rows = [line.split() for line in data.splitlines() if line.lstrip()[:6] == b"vertex"]
        if b"endsolid" not in data or len(rows) % 3:
            raise FileError("The triangles are incomplete: the file is truncated or damaged.")
        corners = _vertices([row[1:] for row in rows])
    else:
        raise FileError(
            f"The header announces {n_faces} triangles, {n_bytes} bytes, and the file has "
            f"{len(data)}: it is truncated, damaged or empty."
        )
    _, first = np.unique(corners, axis=0, return_index=True)
    return Contents.single(np.asarray(corners[np.sort(first)], dtype=np.float64))


def read_ply(request: Request) -> Contents:
    """Return x, y, z of the vertices of a polygon file, text or binary."""
    head, found, body = _read_bytes(request).partition(b"end_header")
    if not head.startswith(b"ply") or not found:
        raise FileError("The file has no header from 'ply' to 'end_header'.")
    body = body[2:] if body.startswith(b"\r\n") else body[1:]
    lines = [line.split() for line in head.decode("ascii", "replace").splitlines()]
    form = next((words[1] for words in lines if words[:1] == ["format"] and words[1:]), "")
    n_vertices, properties = _ply_vertex(lines)
    if not {"x", "y", "z"} <= properties.keys():
        raise FileError(f"The vertices have no x, y, z but {', '.join(properties) or 'nothing'}.")
    if form == "ascii":
        words, width = body.split(), len(properties)
        _require_length(n_vertices, len(words) // width)
        table = _numbers(words[: n_vertices * width]).reshape(-1, width)
        return Contents.single(table[:, [list(properties).index(axis) for axis in "xyz"]])
    if form not in ("binary_little_endian", "binary_big_endian"):
        raise FileError(f"The format {form!r} is not one of ascii and binary_*_endian.")
    record = np.dtype(list(properties.items())).newbyteorder("<" if "little" in form else ">")
    _require_length(n_vertices, len(body) // record.itemsize)
    vertices = np.frombuffer(body, record, count=n_vertices)
    return Contents.single(np.column_stack([vertices[axis].astype(np.float64) for axis in "xyz"]))


def _ply_vertex(lines: list[list[str]]) -> tuple[int, dict[str, str]]:
    """Return the number of vertices, and the type of each of their properties."""
    elements = [i for i, words in enumerate(lines) if words[:1] == ["element"]]
    first = lines[elements[0]] if elements else []
    if first[1:2] != ["vertex"] or len(first) != 3:
        raise FileError("The first element must be 'vertex' with a count.")
    start, stop = [*elements, len(lines)][:2]
    properties: dict[str, str] = {}
    for words in [words for words in lines[start:stop] if words[:1] == ["property"]]:
        kind = _PLY_TYPES.get(words[1], words[1]) if len(words) == 3 else ""
        if kind not in _PLY_TYPES.values() or words[2] in properties:
            raise FileError(f"A property of the vertices is not supported: {' '.join(words)!r}.")
        properties[words[2]] = kind
    return _count(first[2].encode()), properties
