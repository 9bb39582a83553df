"""Frozen data that travels the road: photos, regions, guarantees, certificates."""
