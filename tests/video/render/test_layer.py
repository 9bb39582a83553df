"""Painted heads: shown where the head is, and held while it is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from render_made import frames, moving, rendered, scene_of

from dpveil.core.region import Box
from dpveil.faces.geometry.align import Similarity
from dpveil.video.facts import Key
from dpveil.video.painting import Layer, Light


@pytest.mark.parametrize("side", [32.0, 64.0, 300.0])
def test_a_layer_is_shown_where_its_head_is_at_every_size(side: float) -> None:
    picture = np.zeros((256, 256, 4), np.uint8)
    picture[96:112, 160:176] = 255
    layer = Layer(picture, 256, Light(None, 90.0))
    shown = layer.on(Similarity(1 / side, 0.0, -0.7, -0.6), Box(0, 0, 400, 400))[..., 3].astype(float)
    x, y = (float((shown.sum(axis=axis) * np.arange(400)).sum() / shown.sum()) for axis in (0, 1))
    assert x == pytest.approx(side * (168 / 256 - 0.5 + 0.7), abs=0.6)
    assert y == pytest.approx(side * (104 / 256 - 0.5 + 0.6), abs=0.6)


def test_heads_are_held_while_their_tracks_are_present() -> None:
    later = replace(moving(2), keys=tuple(Key(f, 60, 40, 30, 40) for f in range(12, 20)))
    renderer = rendered(scene_of([moving(1, last=8), later]))
    held = []
    for frame in frames(24):
        renderer.frame(frame)
        held.append({*renderer._held})
    assert [one for n, one in enumerate(held) if n == 0 or one != held[n - 1]] == [{1}, set(), {2}, set()]
    assert [n for n, one in enumerate(held) if one] == [n for n in range(24) if renderer.scene.spots(n)]
