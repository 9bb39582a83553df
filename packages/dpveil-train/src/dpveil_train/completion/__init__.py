"""Training of the network that completes heads."""
