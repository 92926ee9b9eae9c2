"""A folder of images: one row per image."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, required
from ..rows.files import first_line
from .base import Contents, Item, Request, disk_size, natural_key
from .registry import IMAGES


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder in natural order, without hidden files."""
    seen = [path for path in folder.iterdir() if not path.name.startswith(".")]
    files = [path for path in seen if path.suffix.lower() in IMAGES.suffixes]
    return sorted(files, key=lambda path: natural_key(path.name))


def read_images(request: Request) -> Contents:
    """Return images as rows of pixels: grey where all are grey, else red, green, blue."""
    required("PIL", "formats", "Reading images", package="pillow")
    files = image_files(request.path)
    if not files:
        known = ", ".join(IMAGES.suffixes)
        raise FileError(f"The folder contains no images ({known}). For data files use load_all.")
    mode, size = _common_form(files, request.options.resize)
    dtype = np.dtype(np.float32 if mode == "F" else np.uint8)
    shape = (len(files), size[0] * size[1] * len(mode))  # one channel for each letter
    n_bytes = shape[0] * shape[1] * dtype.itemsize

    def read() -> npt.NDArray[Any]:
        request.require_memory(n_bytes)
        values = np.empty(shape, dtype=dtype)
        for row, path in enumerate(files):
            values[row] = _pixels(path, mode, size).ravel()
        return values

    return Contents({"": Item(shape, "pixels", read, n_bytes=n_bytes)})


def _common_form(files: list[Path], resize: tuple[int, int] | None) -> tuple[str, tuple[int, int]]:
    """Return the mode (L, RGB or F) and the size that all images are converted to."""
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
    return "RGB" if colour else "F" if deep else "L", resize or next(iter(sizes))


def _pixels(path: Path, mode: str, size: tuple[int, int]) -> npt.NDArray[Any]:
    with _open(path) as image:
        try:
            if image.mode.startswith("I;"):  # 16 bits
                image = image.convert("I")
            image = image.convert(mode)
            return np.asarray(image if image.size == size else image.resize(size))
        except Exception as error:  # Pillow decodes lazily: a damaged image fails here
            name = repr(os.fspath(path))
            raise FileError(f"The image {name} is damaged: {first_line(error)}.") from error


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
