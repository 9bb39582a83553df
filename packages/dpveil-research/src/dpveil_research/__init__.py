"""Reproductions of the papers behind dpveil: one module of settings per paper, with CSV and plots as output.

The photos are the user's own copies of public data sets, and none of them is written, only means over many
photos. Experiments without data are computed from the laws of the mechanisms and synthetic surveys. Published
versions that do not keep their promise are in `published_*`, to be compared with the sound ones.
"""
