"""Heads that dpveil finds by where they are. Nothing here is imported by it."""
