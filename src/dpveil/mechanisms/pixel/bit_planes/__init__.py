"""The bit-planes mechanism: a Haar transform, and every plane of its coefficients answered at random."""
