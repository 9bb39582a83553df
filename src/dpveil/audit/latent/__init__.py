"""How latent mechanisms are audited: small code spaces, exact distributions, gates, mutants."""
