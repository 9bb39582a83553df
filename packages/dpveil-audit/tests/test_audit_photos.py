"""Audits of growth and recombination: what they look at is what is released, faults in the code are seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.faces import heads
from dpveil.faces.geometry import fill as fill_file
from dpveil.faces.geometry import recombine as recombine_function
from dpveil.mechanisms.pixel import base
from dpveil.noise import SeededBits
from dpveil_audit.faces.growth import (
    KINDS,
    GrowthCase,
    GrowthVersion,
    MadeLossy,
    escape_gate,
    release_gate,
    stated_gate,
)
from dpveil_audit.faces.photos import Encoding, neighbours
from dpveil_audit.faces.recombination import (
    BESIDE,
    CORNER,
    LARGE,
    ONE,
    TWO,
    WIDE,
    Made,
    RecombinationCase,
    RecombinationVersion,
    copy_gate,
    hidden_gate,
    outside_gate,
    same_gate,
)

SEED = 20261122
MIDDLE = GrowthCase(Encoding("4:2:0", 95), 45, 61, (Box(18, 17, 13, 9),))


def bits(stream):
    return SeededBits(SEED, stream)


def grown(case, *gates):
    """Return the gates that reject dpveil as it is."""
    made = MadeLossy(case, bits)
    return {f.gate for gate in gates for f in gate(GrowthVersion(name="intact"), made) if not f.passed}


def put(case):
    """Return the gates that reject dpveil as it is."""
    made, intact = Made(case, bits), RecombinationVersion(name="intact")
    found = [f for gate in (hidden_gate, outside_gate, copy_gate) for f in gate(intact, made)]
    return {f.gate for f in (*found, *same_gate(intact, made)) if not f.passed}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", [1, 5, 7])
def test_files_show_the_made_picture_upright(kind, turn):
    y, x = np.mgrid[:45, :61]
    upright = np.stack([2 * x, 3 * y, x + y], axis=2).astype(np.uint8)
    upright = upright[..., :1] if kind == "grey" else upright
    photo = Encoding(kind, 95, turn=turn).photo(upright)
    assert photo.image.shape == upright.shape
    assert np.abs(photo.image.astype(int) - upright).mean() < 6
    assert photo.grid is not None
    assert photo.grid.codec == "JPEG"


def test_neighbours_differ_within_the_region_and_nowhere_else():
    image = np.random.default_rng(1).integers(0, 256, (9, 12, 3), np.uint8)
    inside = np.zeros((9, 12), bool)
    inside[2:6, 3:9] = True
    for name, other in neighbours(image, inside, bits("n")):
        changed = (other != image).any(axis=2)
        assert changed.any(), name
        assert not (changed & ~inside).any(), name


def test_settings_are_what_their_names_say():
    boxes = {
        where: [
            r.box for r in RecombinationCase(where).treated(Photo(np.zeros((61, 85, 3), np.uint8))).regions
        ]
        for where in (TWO, BESIDE, CORNER, LARGE)
    }
    first, second = boxes[TWO]
    assert first.overlaps(second)
    first, second = boxes[BESIDE]
    assert not first.overlaps(second)
    assert first.x + first.w == second.x
    assert boxes[CORNER][0].x == 0
    assert boxes[CORNER][0].y + boxes[CORNER][0].h == 61
    assert boxes[LARGE] == [Box(0, 0, 85, 61)]
    wide = RecombinationCase(WIDE, height=331, width=421).treated(Photo(np.zeros((331, 421, 3), np.uint8)))
    assert max(wide.regions[0].box.w, wide.regions[0].box.h) * 1.3 > fill_file.FINE


# Faults in the code itself


def test_regions_that_do_not_grow_are_seen(monkeypatch: pytest.MonkeyPatch):
    gates = escape_gate, release_gate, stated_gate
    assert grown(MIDDLE, *gates) == set()
    monkeypatch.setattr(heads, "grow", lambda region, photo: region)
    monkeypatch.setattr(base, "grow", lambda region, photo: region)
    assert grown(MIDDLE, *gates) == {"escape", "release"}
    assert "hidden" in put(RecombinationCase(ONE, encoding=Encoding("4:2:0", 90)))


def test_a_region_that_is_not_pasted_whole_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = Region.paste

    def short(self, image, released):
        right(replace(self, box=replace(self.box, w=self.box.w - 1)), image, released[:, :-1])

    monkeypatch.setattr(Region, "paste", short)
    assert grown(MIDDLE, stated_gate) == {"stated"}


def test_a_filling_from_hidden_pixels_is_seen(monkeypatch: pytest.MonkeyPatch):
    assert put(RecombinationCase(TWO)) == set()

    def seen(image, places, crops, *, filling=None, **shown):
        """Shows a tenth of what was there, as a filling without a mask would."""
        out = recombine_function(image, places, crops, filling=filling, **shown)
        for one in places:
            out[one.region.box.slices] = out[one.region.box.slices] * 0.9 + image[one.region.box.slices] * 0.1
        return out

    monkeypatch.setattr(heads, "recombine", seen)
    assert put(RecombinationCase(TWO)) == {"hidden"}


def test_a_tone_of_hidden_pixels_is_seen(monkeypatch: pytest.MonkeyPatch):
    import sys

    file = sys.modules["dpveil.faces.geometry.recombine"]
    right, made = file.match_of, Made(RecombinationCase(ONE, scene="dark"), bits)
    version, images = RecombinationVersion(name="intact"), []
    monkeypatch.setattr(file, "match_of", lambda outside, hidden: right(images[-1], np.zeros_like(hidden)))

    def draw(treated, source, steps):
        images.append(treated.photo.image)
        return treated.draw(source, steps)

    assert not all(f.passed for f in hidden_gate(replace(version, draw=draw), made))


def test_crops_that_are_not_released_are_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpveil_audit.faces.recombination.MadeFaces._draw", lambda self, crops, bits: crops)
    assert "hidden" in put(RecombinationCase(ONE))
