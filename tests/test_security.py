"""The statements of SECURITY.md that no other test holds.

Pickles are in `malformed.py`, escaped names in `test_report.py` and `test_drift_page.py`.
"""

import socket
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unaligned as ua

HOSTILE = [
    "x'; DROP TABLE signatures; --",
    'x" OR 1=1; --',
    "%",
    "?",
    "{0}",
    "a'||(SELECT name FROM signatures)||'",
]


def cloud(seed, d=2):
    return np.random.default_rng(seed).normal(size=(160, d))


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_tags_of_a_store_are_no_sql(tmp_path, text):
    store = ua.Store(tmp_path / "store.db")
    store.add(ua.signature(cloud(0), n_eigenvalues=10), name="plain", tags={"source": "lab"})
    store.add(ua.signature(cloud(1), n_eigenvalues=10), name=text, tags={text: text})
    assert store.names() == ["plain", text]
    assert store.names({text: text}) == [text]
    assert store.names({"source": text}) == store.names({text: "lab"}) == []
    assert [match.name for match in store.nearest(cloud(1), k=1, tags={text: text})] == [text]
    store.remove(text)
    assert store.names() == ["plain"]
    with sqlite3.connect(store.path) as db:
        assert db.execute("SELECT count(*) FROM signatures").fetchone() == (1,)
    db.close()


def test_features_of_an_explanation_are_text_in_the_report(tmp_path):
    names = ["a", "b", "</script><script>alert(1)</script>"]
    clouds = {name: pd.DataFrame(cloud(i, 3), columns=names) for i, name in enumerate("xy")}
    found = ua.compare(clouds, n_eigenvalues=10, rng=0)
    why = found.explain("x", "y", clouds, by="features", n_repeats=2)
    found.report(tmp_path / "report.html", explanations=[why])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert page.count("<script") == page.count("</script") == 2  # the data and the program


def test_bound_kind_of_a_signature_is_text_in_the_report(tmp_path):
    found = ua.compare({name: cloud(i) for i, name in enumerate("xy")}, n_eigenvalues=10)
    for name, kept in found._descriptors.items():
        spectrum = replace(kept.spectrum, bound_kind='"><img src=x onerror=alert(7)>')
        found._descriptors[name] = replace(kept, spectrum=spectrum)
    found.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "alert(7)" in page
    assert "<img src=x" not in page


def test_nothing_connects_to_a_network(tmp_path, monkeypatch):
    def connect(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    clouds = {f"{d}d": cloud(d, d) for d in (1, 2, 3)}
    found = ua.compare(clouds, n_eigenvalues=10, rng=0)
    found.report(tmp_path / "report.html")
    found.save(tmp_path / "found.npz")
    ua.Comparison.load(tmp_path / "found.npz").plot()
