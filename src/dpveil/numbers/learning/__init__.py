"""Models that are trained on private records, with a guarantee on what they show of them; extra `learn`."""

from dpveil.numbers.learning.naive_bayes import PrivateGaussianNB

__all__ = ["PrivateGaussianNB"]
