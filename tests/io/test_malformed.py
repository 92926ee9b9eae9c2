"""Malformed and hostile files: an error that names the file, and nothing is ever run."""

import re

import pytest

import unaligned as ua
from malformed import CASES, SEVERAL, place
from unaligned.errors import InputError


def named(name):
    """Return the file's name as messages quote it."""
    return re.escape(repr(name.partition(":")[0])[1:-1])


def test_there_are_enough_of_them():
    assert len(CASES) >= 100


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CASES)
def test_a_malformed_file_is_refused_by_its_name(name, tmp_path):
    path = place(name, tmp_path)
    with pytest.raises(InputError, match=named(name)) as caught:
        ua.load(path)
    message = str(caught.value)
    assert message.endswith((".", "?")), message
    assert "\n" not in message
    assert not (tmp_path / "witness").exists(), "code in the file was run"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CASES)
def test_load_all_refuses_it_too(name, tmp_path):
    path = place(name, tmp_path)
    if name in SEVERAL:
        assert len(ua.load_all(path)) == 2, "load refuses them for their number only"
        return
    with pytest.raises(InputError, match=named(name)):
        ua.load_all(path)
    assert not (tmp_path / "witness").exists(), "code in the file was run"
