"""Datasets as samples of scikit-learn, as `ua.sklearn`: estimators on sequences of datasets."""

# The code is in `unaligned.integrations.sklearn`; this module gives it its public name. Imports
# are absolute, so `import sklearn` inside of the package is scikit-learn.

from .integrations.sklearn import DistanceTransformer as DistanceTransformer
from .integrations.sklearn import KernelFromDistance as KernelFromDistance
from .integrations.sklearn import SignatureTransformer as SignatureTransformer
from .integrations.sklearn import __all__ as __all__
