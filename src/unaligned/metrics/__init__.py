"""From two datasets to one number."""
