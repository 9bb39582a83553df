"""What stays in the clear of a clip, and what is refused before anything is paid."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.video.plan.made import box, face, plan, whole

from dpveil.errors import NoiseError
from dpveil.faces.attributes_method import Attributes
from dpveil.mechanisms.pixel import DPPix
from dpveil.video.facts import Key

NEAR = DPPix(epsilon=1, block=16, neighbourhood=16)


def test_faces_of_nobody_cost_nothing_and_say_what_is_in_the_clear():
    tracks = [face(1, person=1), face(2, Key(9, 300, 100, 60, 80), person=1), face(3, visible=True)]
    made = plan(Attributes(), *tracks, keep_audio=True)
    assert made.total.free
    assert made.strength == "strong"
    told = " | ".join(made.in_the_clear)
    for part in (
        "where each region is in every frame, rounded to a public grid",
        "motion",
        "how many tracks there are",
        "in which it was missed",
        "every voice",
        "track 3 as it is",
        "tracks 1 and 2 show one person, as the user says",
        "tilted and turned",
        "lossy video format",
        "begins and ends, and why",
    ):
        assert part in told
    assert any("VOICES" in text for text in made.warnings)
    silent = plan(Attributes(), face(1))
    assert "voice" not in " | ".join((*silent.in_the_clear, *silent.warnings))
    assert "photo" not in told


def test_what_was_looked_for_is_in_the_clear_whatever_was_removed_by_hand():
    """A face was found, and its track removed, or called a box: it is not true that nothing was found."""
    for track in (box(2), face(1, Key(0, 32, 40, 64, 48), Key(99, 300, 40, 61, 45), kind="box")):
        told = " | ".join(plan(NEAR, track, request=("faces",)).in_the_clear)
        assert "nothing was found" not in told
        for part in ("not rounded", "how many tracks there are", "motion", "in which it was missed"):
            assert part in told
    assert "missed" in " | ".join(plan(NEAR, whole(), face(2, visible=True)).in_the_clear)


def test_what_cannot_be_drawn_is_raised_before_anything_is_paid():
    made = plan(DPPix(epsilon=Fraction(1, 10**12)), whole())
    with pytest.raises(NoiseError):
        made.prepare()
    plan(NEAR, face(1), whole(number=2)).prepare()
