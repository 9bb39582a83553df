"""Audits of synthetic data sets: from the photos of people to every noisy vote that is kept."""
