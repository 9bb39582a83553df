"""Makes the exact laws of this folder importable, and grids on which laws of codes can be written out."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts another number of steps in the place of the 2^16 of latent mechanisms."""

    def put(steps: int) -> None:
        for module in ("base", "coordinate_noise"):
            monkeypatch.setattr(f"dpveil.mechanisms.latent.{module}.STEPS", steps)

    return put
