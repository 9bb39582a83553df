"""The bit-planes mechanism: a Haar transform, with randomised response on every bit plane."""
