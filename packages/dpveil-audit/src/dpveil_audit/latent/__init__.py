"""Audits of latent mechanisms: small code spaces, exact distributions, gates, mutants."""
