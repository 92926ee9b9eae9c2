"""Bytes and seconds as people read them."""

import pytest

from unaligned._format import amount, duration


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1 << 20, "1 MiB"),
        (1023 << 20, "1023 MiB"),
        (3 << 30, "3.0 GiB"),
        (10**20, "88817.8 PiB"),
    ],
)
def test_bytes_have_a_fitting_unit(n_bytes, text):
    assert amount(n_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0.001 s"), (0.26, "0.26 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")],
)
def test_durations_have_a_fitting_unit(seconds, text):
    assert duration(seconds) == text
