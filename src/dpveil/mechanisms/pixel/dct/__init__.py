"""The DCT Gaussian mechanism: an exact block transform, with noise calibrated to the effect of a pixel."""
