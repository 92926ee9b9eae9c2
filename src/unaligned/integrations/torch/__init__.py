"""LES for PyTorch: activations in, gradients out.

`unaligned.torch` is this module.
"""

from ...errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":  # one that torch itself imports
        raise
    raise MissingExtraError("torch", "torch", "unaligned.torch") from error

from .loss import LESLoss as LESLoss
from .recording import activations as activations
from .spectrum import signature as signature

__all__ = ["LESLoss", "activations", "signature"]
