"""What a worker says and checks before a release is paid for, so that none is paid and then lost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from service_client import SETTINGS, photo

from dpveil.service import work


def _release(contents: bytes, **changed: Any) -> Any:
    told = {"do": "release", "settings": {**SETTINGS, **changed}, "pixels": 10**7, "paid": True}
    return work.steps(json.loads(json.dumps(told)), contents)


@pytest.mark.parametrize("kind", ["bmp", "png", "tiff"])
def test_rows_that_are_padded_have_room(kind: str) -> None:
    """A BMP of grey photos that are one pixel wide has four bytes for each."""
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.full((400_000, 1), 9, np.uint8)).save(file, "PNG")
    steps = _release(file.getvalue(), regions="whole", block=1, format=kind)
    planned, _ = next(steps)
    told, image = next(steps)
    assert 0 < told["certificate"] < len(image)  # the certificate is before the image
    assert len(image) + len(json.dumps(told["notes"])) <= planned["room"]


def test_a_draw_that_has_no_memory_is_refused_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = photo()
    assert "total" in next(_release(contents))[0]
    monkeypatch.setattr(work, "DRAW_BYTES", 1 << 50)
    with pytest.raises(MemoryError):
        next(_release(contents))


def test_a_plan_that_is_too_long_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"settings": SETTINGS, "pixels": 10**7}
    for do in ("plan", "page-plan"):
        assert "error" not in next(work.steps({"do": do, **told}, photo()))[0]
    monkeypatch.setattr(work, "MOST_JSON", 500)
    for do in ("plan", "page-plan"):
        error = next(work.steps({"do": do, **told}, photo()))[0]["error"]
        assert (error["kind"], error["message"]) == (
            "RegionError",
            "the plan of one region is longer than the service tells",
        )
