"""From a path to a Dataset."""
