"""The audit of `latent` with codecs of networks: that nothing leads around the noised code."""
