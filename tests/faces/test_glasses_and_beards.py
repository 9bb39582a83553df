"""Glasses and beards that are kept, values of earlier versions, and certificates that state them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from made_nobody import crop, gallery, model

from dpveil.faces.attributes import Attributes
from dpveil.faces.geometry.spectacles import STYLES, with_glasses
from dpveil.noise.bits import SeededBits

MODEL, GALLERY = model(), gallery()
WORN = {
    with_glasses(face, style).tobytes(): (n, style)
    for style in STYLES
    for n, face in enumerate(GALLERY.faces)
}
BARE = {face.tobytes(): (n, "") for n, face in enumerate(GALLERY.faces)}


def method(attributes, model=MODEL, faces=GALLERY):
    return Attributes(attributes=attributes, gallery=faces, model=model)


def shown(own, crops, seed=1):
    """Return which face is released for each crop, and in which spectacles."""
    return [(WORN | BARE)[face.tobytes()] for face in own.release(crops, bits=SeededBits(seed))]


def test_glasses_are_drawn_over_a_face_exactly_where_the_answer_is_yes():
    """At ε = 60 the answer is the reading: fails with probability 1e-24."""
    crops = np.stack([crop({"glasses": n % 2}, seed=n) for n in range(40)])
    worn = [bool(style) for _, style in shown(method("glasses=60"), crops)]
    assert worn == [bool(n % 2) for n in range(40)]
    noisy = [bool(style) for _, style in shown(method("glasses=1/100"), crops)]
    assert 0 < sum(noisy[::2]) < 20  # some who have none get some: it is the answer that is shown
    assert 0 < sum(noisy[1::2]) < 20


def test_every_face_gets_every_style_and_a_chosen_value_needs_no_model():
    """Fails with probability 1e-9 at most: 400 draws of 8 outcomes of 50 each."""
    crops, few = np.zeros((400, 128, 128, 3), np.uint8), gallery(names=("gender",), each=1)
    drawn = method("glasses=yes", "none", few).release(crops, bits=SeededBits(1))
    found = Counter(face.tobytes() for face in drawn)
    assert set(found) == {with_glasses(face, style).tobytes() for face in few.faces for style in STYLES}
    assert max(abs(count - 50) for count in found.values()) < 7 * 50**0.5
    assert {style for _, style in shown(method("glasses=no", "none"), crops[:50])} == {""}
    assert {style for _, style in shown(method("none", "none"), crops[:50])} == {""}


def test_what_a_face_of_the_gallery_looks_like_does_not_count_for_glasses():
    """Also where the model takes half of the gallery's faces for wearers: all are shown."""
    odd = gallery(names=("gender", "glasses"))
    table = method("gender=1,glasses=1", faces=odd).table
    assert set(table) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    for gender in (0, 1):
        assert np.array_equal(table[gender, 0], table[gender, 1])
        assert np.array_equal(table[gender, 0], np.flatnonzero(odd.labels["gender"] == gender))
