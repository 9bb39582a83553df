"""Heads whose boxes overlap are shown together, before one background."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from render_made import frames, moving, rendered, scene_of

from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity
from dpveil.video.renderer import Shown, _groups, show

LEFT, MIDDLE, RIGHT, FAR = Box(0, 0, 20, 20), Box(15, 5, 20, 20), Box(30, 0, 20, 20), Box(70, 0, 9, 9)


def head(box: Box, side: float) -> Shown:
    return Shown(Region(box), Similarity(1 / side, 0.0, 0.0, 0.0), [])


def test_heads_are_in_one_group_if_others_join_them_in_any_order() -> None:
    heads = [head(LEFT, 30), head(MIDDLE, 20), head(RIGHT, 40), head(FAR, 10)]
    for order in permutations(heads):
        groups = {tuple(one.region.box for one in group) for group in _groups(order)}
        assert groups == {(MIDDLE, LEFT, RIGHT), (FAR,)}
    assert _groups([]) == []


@pytest.mark.parametrize("turned", [False, True])
def test_no_head_is_hidden_by_what_is_behind_another(turned: bool) -> None:
    """Alone, each is shown before a background of its own, which would hide the other."""
    tracks = [moving(1, at=(40, 40)), moving(2, at=(62, 44))]
    renderer = rendered(scene_of(tracks[::-1] if turned else tracks))
    frame = frames(1)[0]
    shown = renderer.frame(frame)
    spots, around = renderer._surroundings(frame)
    heads = [renderer._place_head(s, s.region, s.head, 0) for s in spots if s.region and s.head]
    assert len(heads) == 2
    assert heads[0].region.box.overlaps(heads[1].region.box)
    together, apart = around.levels.copy(), around.levels.copy()
    show(together, around, sorted(heads, key=lambda one: (one.unit, one.region.box.y)))
    for one in heads:
        show(apart, around, [one])
    assert (shown == together).all()
    assert np.abs(shown.astype(int) - apart).max() > 20
