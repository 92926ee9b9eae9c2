"""Distances between datasets that share no points, no features and no size."""
