"""DP-Samp: selected intensities, sampled pixels, and interpolation between them."""
