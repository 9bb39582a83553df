"""Trained files by hash."""
