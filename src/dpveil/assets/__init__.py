"""Trained files by hash: writing and reading them, their model cards, and how methods refer to them.

The contents are defined where they are used: codecs in `dpveil.codecs`, galleries and attribute models in
`dpveil.faces`. Each is a `TrainedFile`, and a `Kind` describes it to `AssetField`.
"""
