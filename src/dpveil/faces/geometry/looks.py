"""Looks: how the hair and skin of examples look, as numbers that a network paints from."""

from __future__ import annotations

from typing import Final

LOOK: Final = 8
"""Numbers of a look at each place."""
STRIDE: Final = 8
"""Pixels of the frame between those places."""
