"""The bit-planes mechanism: a Haar transform, then randomised response on every bit plane."""
