"""The experiments of the paper, through the public API only.

A new experiment is one file with a subclass of `base.Experiment`, and one line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .. import _check

if TYPE_CHECKING:
    from .base import Experiment

# name -> module and class; imported on use, so that `unaligned --help` stays quick.
EXPERIMENTS = {
    "tori": ("tori", "Tori"),
    "scaling": ("scaling", "Scaling"),
    "topology": ("topology", "Topology"),
    "aligned": ("aligned", "Aligned"),
    "sensitivity": ("sensitivity", "Sensitivity"),
}


def find(name: str) -> type[Experiment]:
    """Return the experiment of this name.

    Examples
    --------
    >>> find("tori").__name__
    'Tori'
    """
    module, cls = EXPERIMENTS[_check.one_of("experiment", name, EXPERIMENTS)]
    experiment: type[Experiment] = getattr(import_module(f".{module}", __name__), cls)
    return experiment
