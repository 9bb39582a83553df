"""The DCT Gaussian mechanism: an exact block transform, and noise planned by what a pixel moves."""
