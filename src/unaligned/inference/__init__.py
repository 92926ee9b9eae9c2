"""How sure we are: tests and intervals for distances between datasets."""
