"""The benchmark: data sets × methods × attacks, with intervals, bounds, and a folder that can be checked."""
