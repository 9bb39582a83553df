"""Mechanisms: the only places where private pixels meet noise."""
