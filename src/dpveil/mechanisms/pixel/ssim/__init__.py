"""The SSIM exponential mechanism's windows: their quality, and exact draws from their law."""
