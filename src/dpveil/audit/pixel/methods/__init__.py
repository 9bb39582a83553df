"""The audit of each pixel method: one file each, with its versions, mutants and settings."""
