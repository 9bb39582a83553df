"""Heads of nobody that are drawn by this code: no photograph, no training data and no file is involved."""
