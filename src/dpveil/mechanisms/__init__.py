"""Mechanisms: the only code in which private pixels meet noise."""
