"""Points read by blocks: sources, transforms, and reductions over rows."""
