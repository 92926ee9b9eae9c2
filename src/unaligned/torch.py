"""LES for PyTorch, as `ua.torch`: activations of networks, differentiable signatures, a loss."""

# The code is in `unaligned.integrations.torch`; this module gives it its public name. Imports are
# absolute, so `import torch` inside of the package is PyTorch.

from .integrations.torch import LESLoss as LESLoss
from .integrations.torch import __all__ as __all__
from .integrations.torch import activations as activations
from .integrations.torch import signature as signature
