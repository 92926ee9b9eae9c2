"""Meshes and point clouds, of which the vertices are taken: `.ply`, `.off`, `.obj`, `.stl`."""

from __future__ import annotations

import numpy as np

from .._check import FloatArray
from ..errors import FileError
from .base import Contents, Request

_PLY_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}


def _whole(request: Request) -> bytes:
    request.afford(4 * request.size)  # text is split into words
    return request.path.read_bytes()


def _numbers(words: list[bytes], n_columns: int) -> FloatArray:
    """Return words as a table of numbers; whatever is no number is refused by its place."""
    try:
        values = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError as error:
        raise FileError(f"A vertex has something else than numbers ({error}).") from error
    if not values.size or values.size % n_columns:
        raise FileError(
            f"It has {values.size} coordinates, which do not make rows of {n_columns}; it is cut "
            "short or has no vertices."
        )
    return values.reshape(-1, n_columns)


def read_obj(request: Request) -> Contents:
    """Return the lines `v x y z` of a Wavefront file."""
    lines = _whole(request).replace(b"\\\n", b" ").splitlines()
    rows = [line.split()[1:4] for line in lines if line.lstrip()[:2] in (b"v ", b"v\t")]
    short = next((row for row in rows if len(row) != 3), None)
    if short is not None or not rows:
        what = "no vertices" if short is None else f"a vertex of {len(short)} numbers"
        raise FileError(f"It has {what}; lines 'v x y z' are needed.")
    return Contents.single(_numbers([word for row in rows for word in row], 3))


def read_off(request: Request) -> Contents:
    """Return the vertices of an Object File Format file, text or binary."""
    data = _whole(request)
    first, _, rest = data.partition(b"\n")
    if first.split()[1:2] == [b"BINARY"]:
        return Contents.single(_binary_off(rest))
    lines = [line.partition(b"#")[0].split() for line in data.splitlines()]
    lines = [words for words in lines if words]
    if not lines or (not lines[0][0].endswith(b"OFF") and not lines[0][0].startswith(b"OFF")):
        raise FileError("It does not start with OFF.")
    # ModelNet writes the sizes right behind the word: "OFF8 6 0".
    tail = lines[0][0].rpartition(b"OFF")[2]
    sizes = ([tail] if tail else []) + lines[0][1:]
    body = lines[1:]
    if not sizes and body:
        sizes, body = body[0], body[1:]
    n_vertices = _count(sizes[0] if sizes else b"")
    if n_vertices > len(body):
        raise FileError(f"It says it has {n_vertices} vertices, and {len(body)} lines follow.")
    rows = [words[:3] for words in body[:n_vertices]]
    if any(len(row) != 3 for row in rows):
        raise FileError("A vertex has fewer than three numbers.")
    return Contents.single(_numbers([word for row in rows for word in row], 3))


def _count(word: bytes) -> int:
    if not word.isdigit() or len(word) > 15 or not int(word):
        raise FileError(
            f"The number of vertices must be above 0; {word[:20].decode('ascii', 'replace')!r} "
            "is there."
        )
    return int(word)


def _binary_off(rest: bytes) -> FloatArray:
    n_vertices = int(np.frombuffer(rest[:4].ljust(4, b"\0"), ">u4")[0])
    if not n_vertices or 12 + 12 * n_vertices > len(rest):
        raise FileError(f"It says it has {n_vertices} vertices, and is cut short.")
    values = np.frombuffer(rest, ">f4", count=3 * n_vertices, offset=12)
    return values.astype(np.float64).reshape(-1, 3)


def read_stl(request: Request) -> Contents:
    """Return the corners of a stereolithography file, text or binary, each corner once."""
    data = _whole(request)
    n_faces = int.from_bytes(data[80:84], "little")
    if len(data) >= 84 and len(data) == 84 + 50 * n_faces:
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
        corners = np.frombuffer(data, record, offset=84)["corners"].reshape(-1, 3)
    elif data[:5].lower() == b"solid":
        corners = _ascii_stl(data)
    else:
        raise FileError(
            f"Its header says {n_faces} triangles, {84 + 50 * n_faces} bytes, and it has "
            f"{len(data)}: it is damaged or cut short."
        )
    if not len(corners):
        raise FileError("It has no triangles.")
    _, first = np.unique(corners, axis=0, return_index=True)
    return Contents.single(np.asarray(corners[np.sort(first)], dtype=np.float64))


def _ascii_stl(data: bytes) -> FloatArray:
    rows = [line.split() for line in data.splitlines() if line.lstrip()[:6] == b"vertex"]
    if b"endsolid" not in data or len(rows) % 3 or any(len(row) != 4 for row in rows):
        raise FileError("Its triangles are not complete: it is cut short or damaged.")
    return _numbers([word for row in rows for word in row[1:]], 3)


def read_ply(request: Request) -> Contents:
    """Return x, y, z of the vertices of a polygon file, text or binary."""
    data = _whole(request)
    head, found, body = data.partition(b"end_header")
    if not head.startswith(b"ply") or not found:
        raise FileError("It has no header from 'ply' to 'end_header'.")
    body = body[2:] if body.startswith(b"\r\n") else body[1:]
    lines = [line.split() for line in head.decode("ascii", "replace").splitlines()]
    form = next((words[1] for words in lines if words[:1] == ["format"] and words[1:]), "")
    count, properties = _vertex_element(lines)
    if not {"x", "y", "z"} <= properties.keys():
        raise FileError(f"Its vertices have no x, y, z but {', '.join(properties) or 'nothing'}.")
    if form == "ascii":
        words = body.split()
        if count * len(properties) > len(words):
            raise FileError(f"It says it has {count} vertices, and is cut short.")
        table = _numbers(words[: count * len(properties)], len(properties))
        places = [list(properties).index(axis) for axis in "xyz"]
        return Contents.single(table[:, places])
    order = {"binary_little_endian": "<", "binary_big_endian": ">"}.get(form)
    if order is None:
        raise FileError(f"Its format {form!r} is not one of ascii and binary_*_endian.")
    record = np.dtype([(name, order + kind) for name, kind in properties.items()])
    if count * record.itemsize > len(body):
        raise FileError(f"It says it has {count} vertices, and is cut short.")
    vertices = np.frombuffer(body, record, count=count)
    return Contents.single(np.column_stack([vertices[axis].astype(np.float64) for axis in "xyz"]))


def _vertex_element(lines: list[list[str]]) -> tuple[int, dict[str, str]]:
    """Return how many vertices there are, and the type of each of their properties."""
    elements = [i for i, words in enumerate(lines) if words[:1] == ["element"]]
    if not elements or lines[elements[0]][1:2] != ["vertex"] or len(lines[elements[0]]) != 3:
        raise FileError("Its first element must be 'vertex' with a count.")
    start = elements[0] + 1
    stop = elements[1] if len(elements) > 1 else len(lines)
    properties: dict[str, str] = {}
    for words in lines[start:stop]:
        if words[:1] != ["property"]:
            continue
        if len(words) != 3 or words[1] not in _PLY_TYPES or words[2] in properties:
            raise FileError(f"A property of its vertices is not known: {' '.join(words)!r}.")
        properties[words[2]] = _PLY_TYPES[words[1]]
    return _count(lines[elements[0]][2].encode()), properties
