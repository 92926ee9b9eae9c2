"""From points to the action of a matrix: affinities and the diffusion operator."""
