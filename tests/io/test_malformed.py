"""Malformed and hostile files raise an error that names the file, and run no code."""

import re

import pytest

import unaligned as ua
from malformed import CASES, SEVERAL, place
from unaligned.errors import InputError


def test_there_are_enough_cases():
    assert len(CASES) >= 100


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CASES)
def test_malformed_file_raises_and_is_named(name, tmp_path):
    path = place(name, tmp_path)
    file_name = re.escape(repr(name.partition(":")[0])[1:-1])  # as messages quote it
    with pytest.raises(InputError, match=file_name) as caught:
        ua.load(path)
    message = str(caught.value)
    assert message.endswith((".", "?")), message
    assert "\n" not in message
    if name in SEVERAL:
        assert len(ua.load_all(path)) == 2, "load rejects them for their number only"
    else:
        with pytest.raises(InputError, match=file_name):
            ua.load_all(path)
    assert not (tmp_path / "witness").exists(), "code in the file was run"
