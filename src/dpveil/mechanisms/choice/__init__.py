"""Mechanisms that choose among public values: by rank, or by randomised response."""
