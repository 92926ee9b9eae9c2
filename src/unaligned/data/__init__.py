"""Data in: datasets, preprocessing, shapes."""
