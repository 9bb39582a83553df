"""DP-SVD: the leading singular triples, perturbed together."""
