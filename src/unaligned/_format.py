"""Bytes and seconds as people read them."""

from __future__ import annotations


def amount(n_bytes: float) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> amount(2048), amount(1023 * 2**20), amount(3e9)
    ('2 KiB', '1023 MiB', '2.8 GiB')
    """
    size, units = float(n_bytes), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    digits = 1 if n_bytes >= 2**30 else 0
    return f"{size:.{digits}f} {units[0]}"


def duration(seconds: float) -> str:
    """Return a time for people, to the two digits that an estimate has.

    Examples
    --------
    >>> duration(0.0123), duration(75), duration(300), duration(7300)
    ('0.012 s', '75 s', '5 min', '2.0 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1e-3):.2g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
