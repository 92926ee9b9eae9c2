"""Datasets as samples of scikit-learn, as `ua.sklearn`: estimators on sequences of datasets.

X is a sequence of datasets: a list, a tuple, a pandas Series or an object array, each item
anything that `ua.signature` takes; or an array of shape (n_datasets, N, d).

Examples
--------
>>> import numpy as np
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.neighbors import KNeighborsClassifier
>>> from sklearn.pipeline import make_pipeline
>>> import unaligned as ua
>>> rng = np.random.default_rng(0)
>>> balls = [rng.normal(size=(60, d)) for d in (2, 5) * 6]
>>> model = make_pipeline(ua.sklearn.SignatureTransformer(), KNeighborsClassifier(1))
>>> cross_val_score(model, balls, [2, 5] * 6, cv=3)
array([1., 1., 1.])
"""

from .distances import DistanceTransformer as DistanceTransformer
from .distances import KernelFromDistance as KernelFromDistance
from .signatures import SignatureTransformer as SignatureTransformer

__all__ = ["DistanceTransformer", "KernelFromDistance", "SignatureTransformer"]
