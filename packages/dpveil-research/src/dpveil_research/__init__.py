"""The experiments of the papers behind dpveil, run anew: one file of settings a paper, CSV and plots.

The photos are the user's own copies of public data sets, and nothing of them is written: only means over many
photos. What needs no data is computed, from the laws of the mechanisms and made-up surveys. What papers
publish that does not keep its promise is in `published_*`, to be measured beside the sound versions.
"""
