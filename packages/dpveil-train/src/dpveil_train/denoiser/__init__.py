"""Training of the network that takes the noise of pixel methods from faces."""
