"""A folder of images: one row per image."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FileError, required
from ..rows.files import first_line
from .base import Contents, Item, Request
from .groups import natural_key
from .paths import disk_size

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_MOST_PIXELS = 1 << 27


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder by natural order, hidden files left out."""
    files = [
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]
    return sorted(files, key=lambda path: natural_key(path.name))


def read_images(request: Request) -> Contents:
    """Return images as rows of pixels: grey where all are grey, else red, green, blue."""
    required("PIL", "formats", "Reading images")
    files = image_files(request.path)
    if not files:
        raise FileError(
            f"The folder has no images ({', '.join(SUFFIXES)}). For a folder of data files use "
            "load_all."
        )
    looks = _common_looks(files, request.options.resize)
    shape = (len(files), looks.width * looks.height * looks.channels)
    n_bytes = shape[0] * shape[1] * looks.dtype.itemsize

    def read() -> npt.NDArray[Any]:
        request.afford(n_bytes)
        values = np.empty(shape, dtype=looks.dtype)
        for row, path in enumerate(files):
            values[row] = _pixels(path, looks).ravel()
        return values

    return Contents({"": Item(shape, "pixels", read, n_bytes=n_bytes)})


class _Looks(NamedTuple):
    width: int
    height: int
    channels: int
    dtype: np.dtype[Any]


def _common_looks(files: list[Path], resize: tuple[int, int] | None) -> _Looks:
    """Return the size, channels and type that all images are brought to, from their headers."""
    sizes: dict[tuple[int, int], str] = {}
    modes = set()
    for path in files:
        with _opened(path) as image:
            sizes.setdefault(image.size, path.name)
            modes.add(image.mode)
    if resize is None and len(sizes) > 1:
        shown = ", ".join(f"{w} × {h} ({name!r})" for (w, h), name in list(sizes.items())[:3])
        raise FileError(
            f"Its images have {len(sizes)} different sizes: {shown}. Pass resize=(width, height)."
        )
    deep = {mode for mode in modes if mode.startswith("I") or mode == "F"}
    colour = modes - deep - {"1", "L"}
    if deep and colour:
        raise FileError("It mixes images of 16 bits with colour ones. Convert them to one kind.")
    width, height = resize or next(iter(sizes))
    return _Looks(width, height, 3 if colour else 1, np.dtype("f4" if deep else "u1"))


def _pixels(path: Path, looks: _Looks) -> npt.NDArray[Any]:
    with _opened(path) as image:
        try:
            if looks.dtype.kind == "f":
                image = image.convert("I" if image.mode.startswith("I;") else image.mode)
            image = image.convert(
                "F" if looks.dtype.kind == "f" else "L" if looks.channels == 1 else "RGB"
            )
            if image.size != (looks.width, looks.height):
                image = image.resize((looks.width, looks.height))
        except Exception as error:  # Pillow reads lazily: a damaged image fails here
            raise FileError(
                f"The image {os.fspath(path)!r} is damaged: {first_line(error)}."
            ) from error
        pixels: npt.NDArray[Any] = np.asarray(image)
        return pixels


def _opened(path: Path) -> Any:
    from PIL import Image

    name = repr(os.fspath(path))
    disk_size(path)  # a pipe would be waited for
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(path, formats=_FORMATS)
    except Exception as error:
        raise FileError(f"The image {name} cannot be read: {first_line(error)}.") from error
    if image.size[0] * image.size[1] > _MOST_PIXELS:
        image.close()
        raise FileError(f"The image {name} says it has {image.size[0]} × {image.size[1]} pixels.")
    return image
