"""CIFAR-100 (Krizhevsky, 2009) as one sheet of tiles per class, and its few-shot splits."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


from ..errors import FileError, required

SPLITS = ("fc100", "cifar_fs")
N_IMAGES = 600  # per class
_TILE, _ROWS, _COLUMNS = 32, 30, 20  # pixels, and tiles per sheet


def data_folder() -> Path:
    """Return the folder of real data, `UNALIGNED_DATA` or ../shared/data."""
    return Path(os.environ.get("UNALIGNED_DATA") or Path("..") / "shared" / "data")


@dataclass(frozen=True)
class CIFAR100:
    """The folder of the sheets and the split of every class."""

    folder: Path
    splits: dict[str, dict[str, str]]  # class -> benchmark -> train, val or test

    @classmethod
    def open(cls, folder: Path | None = None) -> "CIFAR100":
        """Return the data of a folder that contains `classes.json` and `NAME.webp`."""
        place = data_folder() / "cifar100" if folder is None else folder
        try:
            records = json.loads((place / "classes.json").read_text(encoding="utf-8"))
            splits = {r["name"]: {name: r[name] for name in SPLITS} for r in records}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"CIFAR-100 is not in {str(place)!r} ({_reason(error)}). Put NAME.webp of every "
                "class, 30 × 20 tiles of 32 pixels, and classes.json there, or set UNALIGNED_DATA "
                "to the folder that contains cifar100/."
            ) from error
        return cls(place, splits)

    def classes(self, benchmark: str, part: str) -> list[str]:
        """Return the classes in a part (train, val, test) of a benchmark (fc100, cifar_fs)."""
        return sorted(name for name, split in self.splits.items() if split[benchmark] == part)

    def images(self, name: str) -> npt.NDArray[Any]:
        """Return the 600 images of a class, (600, 32, 32, 3) of uint8."""
        path = self.folder / f"{name}.webp"
        image = required("PIL.Image", "formats", "Reading CIFAR-100", package="pillow")
        try:
            with image.open(path, formats=("WEBP",)) as sheet:
                pixels = np.asarray(sheet.convert("RGB"))
            tiles = pixels.reshape(_ROWS, _TILE, _COLUMNS, _TILE, 3).swapaxes(1, 2)
        except (OSError, ValueError) as error:
            raise FileError(f"The sheet {str(path)!r} is missing or damaged: {error}.") from error
        return tiles.reshape(N_IMAGES, _TILE, _TILE, 3)

    def load(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Return the images of several classes by name; 2 MB each."""
        return {name: self.images(name) for name in names}


def _reason(error: Exception) -> str:
    return error.strerror or "unreadable" if isinstance(error, OSError) else "it is damaged"
