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
from .base import Contents, Item, Request, disk_size, natural_key
from .registry import IMAGES


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder in natural order, without hidden files."""
    files = [
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGES.suffixes and not path.name.startswith(".")
    ]
    return sorted(files, key=lambda path: natural_key(path.name))


def read_images(request: Request) -> Contents:
    """Return images as rows of pixels: grey where all are grey, else red, green, blue."""
    required("PIL", "formats", "Reading images")
    files = image_files(request.path)
    if not files:
        raise FileError(
            f"The folder contains no images ({', '.join(IMAGES.suffixes)}). For a folder of data "
            "files use load_all."
        )
    form = _common_form(files, request.options.resize)
    shape = (len(files), form.width * form.height * form.n_channels)
    n_bytes = shape[0] * shape[1] * form.dtype.itemsize

    def read() -> npt.NDArray[Any]:
        request.require_memory(n_bytes)
        values = np.empty(shape, dtype=form.dtype)
        for row, path in enumerate(files):
            values[row] = _pixels(path, form).ravel()
        return values

    return Contents({"": Item(shape, "pixels", read, n_bytes=n_bytes)})


class _Form(NamedTuple):
    """The size, channels and type that all images of a folder are converted to."""

    width: int
    height: int
    n_channels: int
    dtype: np.dtype[Any]


def _common_form(files: list[Path], resize: tuple[int, int] | None) -> _Form:
    """Return the common form of images, from their headers."""
    sizes: dict[tuple[int, int], str] = {}
    modes = set()
    for path in files:
        with _open(path) as image:
            sizes.setdefault(image.size, path.name)
            modes.add(image.mode)
    if resize is None and len(sizes) > 1:
        shown = ", ".join(f"{w} × {h} ({name!r})" for (w, h), name in list(sizes.items())[:3])
        raise FileError(
            f"The images have {len(sizes)} different sizes: {shown}. Pass resize=(width, height)."
        )
    deep = {mode for mode in modes if mode.startswith("I") or mode == "F"}
    colour = modes - deep - {"1", "L"}
    if deep and colour:
        raise FileError("The folder mixes 16-bit and colour images. Convert them to one kind.")
    width, height = resize or next(iter(sizes))
    return _Form(width, height, 3 if colour else 1, np.dtype("f4" if deep else "u1"))


def _pixels(path: Path, form: _Form) -> npt.NDArray[Any]:
    with _open(path) as image:
        try:
            if form.dtype.kind == "f":
                image = image.convert("I") if image.mode.startswith("I;") else image
                image = image.convert("F")
            else:
                image = image.convert("L" if form.n_channels == 1 else "RGB")
            if image.size != (form.width, form.height):
                image = image.resize((form.width, form.height))
        except Exception as error:  # Pillow decodes lazily: a damaged image fails here
            raise FileError(
                f"The image {os.fspath(path)!r} is damaged: {first_line(error)}."
            ) from error
        pixels: npt.NDArray[Any] = np.asarray(image)
        return pixels


def _open(path: Path) -> Any:
    from PIL import Image

    name = repr(os.fspath(path))
    disk_size(path)  # raises for a pipe, which would block
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            formats = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
            image = Image.open(path, formats=formats)
    except Exception as error:
        raise FileError(f"The image {name} cannot be read: {first_line(error)}.") from error
    width, height = image.size
    if width * height > 1 << 27:  # pixels; larger ones are no rows of a dataset
        image.close()
        raise FileError(f"The image {name} claims to have {width} × {height} pixels.")
    return image
