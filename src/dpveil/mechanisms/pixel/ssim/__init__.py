"""The windows of the SSIM exponential mechanism: their quality, and exact draws from their distribution."""
