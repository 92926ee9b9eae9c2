"""Datasets: values, preprocessing, and shapes."""
