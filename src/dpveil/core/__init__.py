"""Frozen data: photos, regions, guarantees, certificates."""
