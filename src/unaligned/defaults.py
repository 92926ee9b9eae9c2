"""Defaults and thresholds that more than one module uses, each defined once.

A constant that only one module uses stays in that module.
"""

GAMMA = 1e-8  # the regularisation γ of log(λ + γ); the paper's choice for the tori
SAMPLED_TOL = 0.05  # the smallest error that sampling rows aims at: below, it would take most
TOL = 1e-4  # wanted 2-norm of the error of the K values log(λ + γ)
N_EIGENVALUES = 200  # K, where no dataset has fewer rows
BANDWIDTH_FACTOR = 2.0  # σ² = factor · median(d²), as the authors' code has it

# Names to choose from, the default first; help pages show them without importing the classes.
KERNELS = ("gaussian", "laplacian")  # classes in operators/kernel.py
BANDWIDTH_RULES = ("median", "mean")  # functions of operators/bandwidth.py

SIGNIFICANCE = 0.05  # p-values up to this count as a difference; intervals hold 95 %

# Points of this many rows and more are processed by blocks: keeping r features of every row
# (8 r bytes each) in memory costs more than recomputing them in each pass.
STREAM_ROWS = 50_000
# Up to this many rows, products with an affinity that is not in memory take minutes, and may be
# made without being asked for.
PRODUCT_ROWS = 100_000
LAZY_BYTES = 1 << 28  # rows of a file or a Dask array are read whole up to 256 MiB

# Matrices of up to this many rows (32 MB) are taken to fit, and the available memory is not read.
SMALL_ROWS = 2000
# Columns up to which `cdist` is no slower than a matrix product; it has no cancellation.
FEW_FEATURES = 16
# Columns up to which principal components come from the covariance, of 128 MB here.
COVARIANCE_COLUMNS = 4000
