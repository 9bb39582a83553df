"""Training of `stylegan`: StyleGAN2's generator as a decoder, its encoders, and checkpoints of others."""
