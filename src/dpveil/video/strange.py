"""What `layout` says of a file that is not laid out as dpveil writes it."""

from __future__ import annotations


class Strange(Exception):
    """What in a file is not as dpveil writes it."""
