"""From the action of a matrix to its leading eigenvalues, with certificates."""
