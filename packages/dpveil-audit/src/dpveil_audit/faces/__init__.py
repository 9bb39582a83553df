"""Audits of face methods: the choice of a face, and growth and recombination of regions."""
