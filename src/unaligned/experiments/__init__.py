"""The experiments of the paper, through the public API only."""
