"""Rendering a clip by its plan: paid, drawn once, rendered in segments, joined, certified; or gone on with."""
