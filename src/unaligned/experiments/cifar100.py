"""CIFAR-100 (Krizhevsky, 2009) as one sheet of tiles per class, and its few-shot splits."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, required
from ..rows.files import first_line
from .pictures import data_folder

SPLITS = ("fc100", "cifar_fs")
N_IMAGES = 600  # per class, of training and test set together


@dataclass(frozen=True)
class CIFAR100:
    """The folder of the sheets, and the split of every class."""

    folder: Path
    splits: dict[str, dict[str, str]]  # class -> benchmark -> train, val or test

    @classmethod
    def open(cls) -> "CIFAR100":
        """Return the data in the folder cifar100 of `UNALIGNED_DATA`."""
        folder = data_folder() / "cifar100"
        try:
            records = json.loads((folder / "classes.json").read_text(encoding="utf-8"))
            splits = {r["name"]: {name: r[name] for name in SPLITS} for r in records}
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "classes.json is damaged"
            raise _missing(folder, reason) from error
        return cls(folder, splits)

    def classes(self, benchmark: str, part: str) -> list[str]:
        """Return the classes in a part (train, val, test) of a benchmark (fc100, cifar_fs)."""
        return sorted(name for name, split in self.splits.items() if split[benchmark] == part)

    def load(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Return the 600 images of each class, (600, 32, 32, 3) of uint8."""
        return {name: self._images(name) for name in names}

    def _images(self, name: str) -> npt.NDArray[Any]:
        path = self.folder / f"{name}.webp"
        image = required("PIL.Image", "formats", "Reading CIFAR-100", package="pillow")
        try:
            with image.open(path, formats=("WEBP",)) as sheet:
                pixels = np.asarray(sheet.convert("RGB"))
            tiles = pixels.reshape(30, 32, 20, 32, 3).swapaxes(1, 2)
        except FileNotFoundError as error:
            raise _missing(self.folder, f"there is no {path.name}") from error
        except Exception as error:  # Pillow raises many kinds on foreign bytes
            raise FileError(f"Cannot read {str(path)!r}: {first_line(error)}.") from error
        return tiles.reshape(N_IMAGES, 32, 32, 3)


def _missing(folder: Path, reason: str | None) -> FileError:
    return FileError(
        f"CIFAR-100 is not in {str(folder)!r} ({reason}). Put a sheet NAME.webp per class "
        "(30 × 20 tiles of 32 pixels) and classes.json there, or set UNALIGNED_DATA to "
        "the folder that contains 'cifar100'."
    )
