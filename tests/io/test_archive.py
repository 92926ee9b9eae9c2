"""Archives: written atomically, never unpickled, and every damage raises a FileError."""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import FileError, InputTypeError
from unaligned.io.archive import append_text, write_text

POINTS = np.random.default_rng(0).normal(size=(30, 3))


def a_signature():
    return ua.signature(ua.Dataset(POINTS, name="Σ"), n_eigenvalues=4)


def a_comparison():
    return ua.compare({"a": POINTS, "b": POINTS[:20]}, n_eigenvalues=4)


SAVED = {
    "signature": (a_signature, ua.Signature.load),
    "comparison": (a_comparison, ua.Comparison.load),
}


class Bomb:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def with_header(path, header, **arrays):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb") as stream:
        np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **arrays)


def as_npy(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def object_array(path, trap):
    with open(path, "wb") as stream:
        np.savez(stream, header=np.array([Bomb(trap)], dtype=object))


def pickled_member(path, trap):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", pickle.dumps(Bomb(trap)))


def pickled_eigenvalues(path, trap, make=a_signature):
    make().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            swap = "eigenvalues" in name or "distances" in name
            archive.writestr(name, pickle.dumps(Bomb(trap)) if swap else content)


FOREIGN = {
    "a missing file": (lambda path, trap: None, r"Cannot read .*no such file"),
    "a directory": (lambda path, trap: path.mkdir(), r"Cannot read .*directory"),
    "an empty file": (
        lambda path, trap: path.write_bytes(b""),
        r"is empty \(0 bytes\)",
    ),
    "text": (lambda path, trap: path.write_text("a,b\n1,2\n"), r"was not written by unaligned"),
    "a pickle": (
        lambda path, trap: path.write_bytes(pickle.dumps(Bomb(trap))),
        r"was not written by unaligned",
    ),
    "a plain .npy": (lambda path, trap: path.write_bytes(as_npy(POINTS)), r"was not written by"),
    "an object array": (object_array, r"was not written by unaligned.*allow_pickle"),
    "a pickle as a member": (pickled_member, r"was not written by unaligned"),
    "another .npz": (
        lambda path, trap: np.savez(path, x=POINTS),
        r"was not written by.*header",
    ),
    "a header that is a list": (lambda path, trap: with_header(path, [1]), r"was not written by"),
    "a header that is a number": (lambda path, trap: with_header(path, 1), r"was not written by"),
    "a header that is not JSON": (
        lambda path, trap: with_header(path, b"\xff{"),
        r"was not written by",
    ),
    "a header without a format": (lambda path, trap: with_header(path, {}), r"'format'"),
    "another format": (
        lambda path, trap: with_header(path, {"format": "theirs", "version": 1}),
        r"contains 'theirs', not 'unaligned-",
    ),
}


@pytest.mark.parametrize("what", SAVED)
@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_file_raises_and_runs_no_code(case, what, tmp_path):
    path, trap = tmp_path / "file.npz", tmp_path / "trap"
    write, message = FOREIGN[case]
    write(path, trap)
    with pytest.raises(FileError, match=message):
        SAVED[what][1](path)
    assert not trap.exists()


@pytest.mark.parametrize("what", SAVED)
def test_pickle_in_place_of_array_is_not_loaded(what, tmp_path):
    path, trap = tmp_path / "file.npz", tmp_path / "trap"
    pickled_eigenvalues(path, trap, SAVED[what][0])
    with pytest.raises(FileError, match=r"file.npz' is damaged"):
        SAVED[what][1](path)
    assert not trap.exists()


@pytest.mark.parametrize("what", SAVED)
@pytest.mark.parametrize(
    ("header", "message"),
    [({"version": 99}, r"has version 99.*Update unaligned"), ({"version": "x"}, r"has version x")],
)
def test_later_version_raises(what, header, message, tmp_path):
    path = tmp_path / "file.npz"
    with_header(path, {"format": f"unaligned-{what}", **header})
    with pytest.raises(FileError, match=message):
        SAVED[what][1](path)


@pytest.mark.parametrize("what", SAVED)
def test_file_without_arrays_raises(what, tmp_path):
    path = tmp_path / "file.npz"
    with_header(path, {"format": f"unaligned-{what}", "version": 1})
    with pytest.raises(FileError, match=r"file.npz' is damaged"):
        SAVED[what][1](path)


def test_loading_signature_as_comparison_raises(tmp_path):
    a_signature().save(tmp_path / "file")
    with pytest.raises(FileError, match="'unaligned-signature', not 'unaligned-comparison'"):
        ua.Comparison.load(tmp_path / "file")


@pytest.mark.parametrize("what", SAVED)
def test_every_truncation_raises(what, tmp_path):
    make, load = SAVED[what]
    path = tmp_path / "file.npz"
    make().save(path)
    content = path.read_bytes()
    for length in range(1, len(content), max(1, len(content) // 50)):
        path.write_bytes(content[:length])
        with pytest.raises(FileError, match="was not written by unaligned, or it is damaged"):
            load(path)


@pytest.mark.parametrize("what", SAVED)
def test_flipped_byte_raises_file_error_or_is_harmless(what, tmp_path):
    make, load = SAVED[what]
    path = tmp_path / "file.npz"
    make().save(path)
    content = path.read_bytes()
    for position in range(0, len(content), max(1, len(content) // 300)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with suppress(FileError):  # any other error fails the test
            load(path)


def save_on_full_disk(path):
    """Save in a process whose files are limited to 100 bytes, as on a full disk."""
    script = (
        "import resource, sys, numpy as np, unaligned as ua\n"
        "s = ua.signature(np.arange(30.0).reshape(10, 3), n_eigenvalues=4)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: s.save(sys.argv[1])\n"
        "except ua.errors.FileError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return done.stdout


def test_append_text_adds_to_a_file_that_exists(tmp_path):
    write_text(tmp_path / "file", "first\n")
    append_text(tmp_path / "file", "second\n")
    append_text(tmp_path / "file", "γ\n")
    assert (tmp_path / "file").read_text("utf-8") == "first\nsecond\nγ\n"
    with pytest.raises(FileError, match=r"Cannot write '.*absent': No such file"):
        append_text(tmp_path / "absent", "line\n")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_append_text_to_a_full_disk_raises():
    with pytest.raises(FileError, match=r"Cannot write '/dev/full': No space left on device"):
        append_text(Path("/dev/full"), "line\n")


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_full_disk_keeps_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "old.npz"
    a_signature().save(path)
    before = path.read_bytes()
    assert "Cannot write" in save_on_full_disk(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["old.npz"]


@pytest.mark.parametrize("what", SAVED)
@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("absent/file", r"No such file.* Create the folder '.*absent' first"),
        ("folder", r"exists and is not a plain file"),
    ],
)
def test_unwritable_path_raises(what, place, message, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=message):
        SAVED[what][0]().save(tmp_path / place)
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(tmp_path / "folder") == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_device_is_not_replaced_by_file():
    with pytest.raises(FileError, match="'/dev/full': it exists and is not a plain file"):
        a_signature().save("/dev/full")


def test_link_stays_a_link_and_permissions_follow_umask(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    a_signature().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ua.Signature.load(tmp_path / "real").name == "Σ"
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "name", ["naïve Σ 数据 🧬", "with 'quotes' and \\", "", "\udcff undecodable"]
)
def test_any_text_can_be_a_name(name, tmp_path):
    path = tmp_path / "file"
    ua.compare({name: POINTS, "other": POINTS[:20]}, n_eigenvalues=4).save(path)
    loaded = ua.Comparison.load(path)
    assert loaded.names == (name, "other")
    assert loaded[name, "other"] > 0


def test_saving_does_not_change_the_umask(tmp_path, monkeypatch):
    # The umask is shared by all threads and cannot be read without being changed.
    monkeypatch.setattr("os.umask", lambda mask: pytest.fail("umask was changed"))
    a_signature().save(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("path", [None, 3, b"here", ""])
def test_non_path_raises_wherever_a_path_is_taken(path):
    points = np.random.default_rng(0).normal(size=(30, 2))
    comparison = ua.compare({"a": points, "b": points[:20]}, n_eigenvalues=5)
    signature = comparison.signatures["a"]
    calls = [comparison.report, comparison.save, ua.Comparison.load, signature.save, ua.Store]
    for call in [*calls, ua.Signature.load, ua.load]:
        with pytest.raises(InputTypeError, match=r"path=.* must be a path: a string or a pathlib"):
            call(path)
