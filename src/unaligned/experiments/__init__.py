"""The experiments of the paper, through the public API only.

A new experiment is one file with a subclass of `base.Experiment`, and one line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .. import _check

if TYPE_CHECKING:
    from .base import Experiment

# name -> class, in the module of that name; imported on use, so that `unaligned --help` is fast.
EXPERIMENTS = {
    "tori": "Tori",
    "scaling": "Scaling",
    "topology": "Topology",
    "aligned": "Aligned",
    "sensitivity": "Sensitivity",
    "tasks": "Tasks",
    "layers": "Layers",
    "cells": "Cells",
}


def find(name: str) -> type[Experiment]:
    """Return the experiment of this name."""
    class_name = EXPERIMENTS[_check.one_of("experiment", name, EXPERIMENTS)]
    experiment: type[Experiment] = getattr(import_module(f".{name}", __name__), class_name)
    return experiment
