"""DP-Samp: intensities that are shown, pixels sampled, and the picture painted between them."""
