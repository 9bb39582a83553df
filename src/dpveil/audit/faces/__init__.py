"""How face methods are audited: the choice of a face, and growth and recombination of regions."""
