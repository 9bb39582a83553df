"""A stand-in for the network that finds text: what is darker than 60 is text."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.regions.text import decode, upright


def dark(image: np.ndarray, threshold: float) -> np.ndarray:
    """Return the boxes around what is dark, with rooms as the network leaves them."""
    return upright(decode((image.max(axis=2) < 60).astype(np.float32), threshold))


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dark pixels be text, whether the extra is installed or not."""
    monkeypatch.setattr("dpveil.regions.text.network", lambda: dark)
