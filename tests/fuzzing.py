"""Mutations of valid files, and a process that reads them."""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
import tempfile
import warnings
from pathlib import Path

from hypothesis import strategies as st

from sample_files import LABELLED, VALID, image_folder, zarr_folder

FILES = {**VALID, **LABELLED}
FOLDERS = {
    "points.zarr": zarr_folder,
    "old.zarr": lambda path: zarr_folder(path, version=2),
    "images": image_folder,
}
_NUMBERS = [b"\xff" * 4, b"\0" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"999999999", b"-1", b"nan"]
_SECONDS = 60
_MOST_MEMORY = 6 << 30


def mutations():
    """Return a strategy of lists of changes; positions are fractions of the file's length."""
    place = st.floats(0, 1, exclude_max=True)
    change = st.one_of(
        st.tuples(st.just("flip"), place, st.integers(0, 7)),
        st.tuples(st.just("byte"), place, st.integers(0, 255)),
        st.tuples(st.just("cut"), place, st.just(0)),
        st.tuples(st.just("drop"), place, st.integers(1, 40)),
        st.tuples(st.just("insert"), place, st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("overwrite"), place, st.sampled_from(_NUMBERS)),
        st.tuples(st.just("splice"), place, place),
    )
    return st.tuples(place, st.lists(change, min_size=1, max_size=6))


def mutated(data, changes):
    """Return the bytes with these changes applied in order."""
    out = bytearray(data)
    for kind, where, what in changes:
        i = int(where * len(out))
        if kind == "flip" and out:
            out[i] ^= 1 << what
        elif kind == "byte" and out:
            out[i] = what
        elif kind == "cut":
            del out[i:]
        elif kind == "drop":
            del out[i : i + what]
        elif kind == "insert":
            out[i:i] = what
        elif kind == "overwrite":
            out[i : i + len(what)] = what
        elif kind == "splice":
            j = int(what * len(data))
            out[i : i + 64] = data[j : j + 64]
    return bytes(out)


def _read_files(connection):
    """Read the paths that arrive and send back the outcome of each, until None arrives."""
    import unaligned as ua

    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    warnings.simplefilter("ignore")
    for path in iter(connection.recv, None):
        outcome = "read"
        for reader, options in _ways(ua, path):
            try:
                reader(path, **options)
            except ua.errors.InputError as error:
                outcome = "rejected"
                if Path(path).name not in str(error):
                    outcome = f"rejected without the file's name: {error}"
                    break
            except BaseException as error:
                outcome = (
                    f"{reader.__name__} with {options} raised {type(error).__name__}: {error}"
                )
                break
        connection.send(outcome)


def _ways(ua, path):
    """Return the calls that read a file; none may fail otherwise than by an `InputError`."""
    ways = [(ua.load, {}), (ua.load_all, {})]
    if Path(path).name in LABELLED:
        ways.append((ua.load_all, {"group_by": "day"}))
    if path.endswith((".csv", ".tsv", ".parquet", ".feather")):
        ways.append((ua.load, {"drop_non_numeric": True, "nan_policy": "omit"}))
    if path.endswith((".npy", ".parquet", ".h5", ".h5ad", ".zarr", ".safetensors")):
        ways.append((ua.load, {"lazy": True}))
    return ways


class Sandbox:
    """A process that reads files, restarted when it crashes or hangs."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp())
        self.context = multiprocessing.get_context("spawn")
        self.process = None
        return self

    def __exit__(self, *exception):
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, name, mutation):
        """Return `read`, `rejected`, or another outcome of a mutated file."""
        path = self._write(name, *mutation)
        if self.process is None:
            self._start()
        self.connection.send(str(path))
        try:
            if self.connection.poll(_SECONDS):
                return self.connection.recv()
            outcome = f"hangs for more than {_SECONDS} s"
        except EOFError:
            self.process.join()
            outcome = f"crashes with exit code {self.process.exitcode}"
        self._stop()
        return outcome

    def _write(self, name, which, changes):
        path = self.folder / name
        if name in FILES:
            path.write_bytes(mutated(FILES[name](), changes))
            return path
        shutil.rmtree(path, ignore_errors=True)
        FOLDERS[name](path)
        files = sorted(file for file in path.rglob("*") if file.is_file())
        file = files[int(which * len(files))]
        file.write_bytes(mutated(file.read_bytes(), changes))
        return path

    def _start(self):
        self.connection, other = self.context.Pipe()
        self.process = self.context.Process(target=_read_files, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def _stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
