"""Words of certificates follow from data and from their version: a rewording raises `WORDING`."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from dpveil import verify
from dpveil.core.certificate import WORDING, WORDINGS, WROTE, this_tool
from dpveil.core.origin import SAME, Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.faces import Attributes, Gallery, Latent
from dpveil.mechanisms.pixel import DPSVD, Blur, DPPix, Fill, Snow
from dpveil.release.quote import Quote
from dpveil.release.requests import are_unplaced
from dpveil.release.verified import NOT_PLACED
from dpveil.release.words import LOW, MISSING, bit_cautions

HASH = "sha256:" + 64 * "0"
METHODS = [
    DPPix(epsilon=1, block=4),
    DPPix(epsilon=50, block=4, neighbourhood=4, delta="0.1"),
    Blur(sigma=4),
    DPSVD(epsilon=1, rank=2),
    Fill(),
    Snow(delta="0.5"),
    Gallery(epsilon=8, gallery=f"gallery {HASH}"),
    Attributes(attributes="none", gallery=f"gallery {HASH}", model=f"attributes {HASH}"),
    Latent(epsilon=300, codec=f"pca 100 {HASH}", protect="head", placing="landmarks"),
]
ORIGINS = [
    Origin("whole", "whole"),
    Origin("whole", fallback=True),
    Origin("box", "0,0,20,20", number=2),
    Origin("mask", "mask", grown_to="JPEG"),
    Origin("face", "faces", number=1, found=True, grown_to="WebP", escapes=True),
    Origin("face", "faces", number=3, found=True, outlined=True),
    Origin("licence plate", "plates", found=True),
]
IN_A_CELL = Origin("face", "faces", number=2, found=True, cell=(23, 0, 10, 9, -1))
"""An origin of which certificates say so since wording 5."""
OLDER = Path(__file__).parent.parent / "fixtures" / "certificates-2"
"""Releases that an older version of dpveil wrote, by wording."""
SENTENCES = {
    2: "d99ec7ac4ca5dff3c6d3489f0301a291b451fca1404b3e853e152d681e01cf24",
    3: "0643c4591474f645658fedee7a31b2b3be4182076bf3976e0c740fba96873a11",
    4: "afbe239973e80279a4bd8dac00d564efbc290b44b93cae2fbca686809c2ee3ab",
    5: "78348e184087e0b1bae8c6da047929abf6e7f1333348fd1c6f5c70ba91025d64",
    6: "6c509483c7e6e936e4904afdad0eb7cf71010a3fdce7649075e4bc8bb4726713",
    7: "288ecd1d4eedf8791771ad6ace4836a3b389a53124352b6a252f08e6a14d3f47",
    8: "076dc0ec7f31120711d5b53c476d32aa7399a1c6fa772097520a81e116cd2e71",
    9: "6498b45151be2fc5d8f84336f3ebfca6faea7bba35595919d7a21e6549ea0842",
    10: "0ba1480c4f509afb282fe25b9db7bbecbb6b9ae6cc99885ba142a9f0e9ebc412",
    11: "0ba1480c4f509afb282fe25b9db7bbecbb6b9ae6cc99885ba142a9f0e9ebc412",
    12: "6bcd657df57801fc5b0609a6f7f7147cfbf4449c3ff60dc4743d270d02d8a5fc",
}
"""Version of the wording to the SHA-256 of all sentences about these quotes."""
SINCE_3 = [DPPix(epsilon=2, block=4, neighbourhood=1), DPPix(epsilon=2, block=4, neighbourhood=16)]
"""Methods whose releases have a warning since wording 3."""
SINCE_8 = [DPPix(epsilon=8, block=4), DPPix(epsilon=9, block=4, neighbourhood=16)]
"""Methods whose releases have a warning since wording 8."""
SINCE_6 = [
    Attributes(attributes="gender=female,tone=medium", gallery="drawn"),
    Gallery(epsilon=8, gallery=f"gallery {HASH}", protect="face"),
]
"""Methods whose releases have a sentence since wording 6."""
BESIDE_A_KEPT_FACE = Origin("face", "faces except=1", number=2, found=True, outlined=True)
"""An origin of which certificates say since wording 9 that the kept face's box is in the clear."""
PASSED = ["faces", "faces except=2", "text margin=0", "plates", "everything {else}"]
"""Requests of which nothing may be found since wording 12."""


def sentences(wording: int) -> list[str]:
    told = [*bit_cautions("seeded"), *bit_cautions("mine"), MISSING]
    methods = METHODS + SINCE_3 * (wording > 2) + SINCE_6 * (wording > 5) + SINCE_8 * (wording > 7)
    for method, origin in product(
        methods, ORIGINS + [IN_A_CELL] * (wording > 4) + [BESIDE_A_KEPT_FACE] * (wording > 8)
    ):
        box = Box(0, 0, 90, 60) if origin.kind == "whole" else Box(0, 0, 20, 20)
        masked = 99 if origin.kind == "mask" or origin.outlined else None
        one = RegionRecord(box, origin, masked)
        quote = Quote(method, (one, one), width=90, height=60, channels=3, wording=wording)
        scope = quote.guarantees[0].scope
        told += [scope.covers, *scope.in_the_clear, *quote.warnings(), quote.accountant]
    for request in PASSED * (wording > 11):
        quote = Quote(METHODS[0], (one,), width=90, height=60, channels=3, wording=wording, passed=(request,))
        told += quote.guarantees[0].scope.in_the_clear
    return told


@pytest.mark.parametrize("wording", WORDINGS)
def test_other_words_are_another_wording(wording: int) -> None:
    """Where this fails, words have changed: raise `WORDING`, and state the new hash beside the old ones.

    Older wordings can still be written, so that `verify` compares what older releases say.
    """
    assert max(WORDINGS) == WORDING
    assert len(set(sentences(wording))) > 40
    digest = hashlib.sha256("\n".join(sentences(wording)).encode()).hexdigest()
    assert SENTENCES[wording] == digest


@pytest.mark.parametrize("name", sorted(path.name for path in OLDER.glob("*.png")))
def test_a_release_of_an_older_wording_still_verifies(name: str) -> None:
    result = verify(OLDER / name)
    assert (result.status, result.problems, result.publishable) == ("consistent", (), True)
    assert result.certificate is not None
    assert f"wording-{result.certificate.wording}-" in name


def test_an_older_wording_hides_no_weak_promise() -> None:
    """Its certificate did not warn of it; what `verify` says is recomputed."""
    result = verify(OLDER / "wording-7-weak.png")
    assert result.certificate is not None
    assert not any("PROMISE" in text for text in result.certificate.warnings)
    assert LOW["weak"] in result.notes


def test_places_of_faces_in_words_before_cells_are_not_checked_and_not_publishable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = OLDER / "wording-8-kept.png"
    stated = verify(path).certificate
    assert stated is not None
    anywhere = tuple(replace(one, origin=replace(one.origin, cell=None)) for one in stated.regions)
    older = replace(stated, wording=4, regions=anywhere)
    assert are_unplaced(older)
    assert not are_unplaced(replace(older, wording=5)), "these are checked: a cell has to be there"
    assert not are_unplaced(replace(older, wording=4, regions=stated.regions)), "and so are these"
    given = tuple(replace(one, origin=Origin("box", "0,0,20,20")) for one in anywhere)
    assert not are_unplaced(replace(older, regions=given)), "nothing was found"
    pixels = {"method": "dp-pix", "parameters": DPPix(epsilon=2, block=4).parameters()}
    assert not are_unplaced(replace(older, **pixels)), "a method of pixels rounds no place"
    monkeypatch.setattr("dpveil.release.verification.are_unplaced", lambda certificate: True)
    found = verify(path, at_least="weak")
    assert (found.status, found.publishable, found.objections) == ("consistent", False, (NOT_PLACED,))
    assert found.refused == f"it is not publishable ({NOT_PLACED})"


def test_verify_says_what_older_words_leave_out_and_which_face_stays() -> None:
    """So that a forger gains nothing by claiming them."""
    notes = verify(OLDER / "wording-8-kept.png").notes
    assert "face 1 stays as it is, as was asked for" in notes
    [said] = [text for text in notes if text.startswith("IN THE CLEAR, which its older words do not say: ")]
    assert "where the face boxes end that were detected and kept: they are not rounded" in said
    assert not any("IN THE CLEAR" in text for text in verify(OLDER / "wording-9-kept.png").notes)
    assert ";" not in said.replace(f"; {SAME}", "")
    for name, word in (("wording-5-chosen.png", "chosen by the user"), ("wording-7-weak.png", "")):
        said = " ".join(verify(OLDER / name).notes)
        assert ("IN THE CLEAR" in said) == (word != "")
        assert word in said


@pytest.mark.parametrize(
    ("tool", "wording"), [(this_tool(), 1), (this_tool(), max(WORDINGS) + 1), ("dpveil 9.9", 8)]
)
def test_no_tool_has_wordings_that_it_never_wrote(tool: str, wording: int) -> None:
    assert this_tool() in WROTE
    stated = verify(OLDER / "wording-8-kept.png").certificate
    assert stated is not None
    assert not stated.misworded
    assert replace(stated, tool=tool, wording=wording).misworded
    assert not replace(stated, tool="dpveil 9.9", wording=max(WORDINGS) + 1).misworded


def test_beside_a_kept_face_its_box_is_in_the_clear_since_9() -> None:
    """Its edge may follow from hidden pixels of its neighbours, rounded or (before 10) not."""
    beside = ((BESIDE_A_KEPT_FACE, wording, wording > 8) for wording in (8, 9, 10))
    for origin, wording, said in (*beside, (IN_A_CELL, 9, False), (IN_A_CELL, 10, False)):
        one = RegionRecord(Box(0, 0, 20, 20), origin, 99)
        quote = Quote(METHODS[7], (one,), width=90, height=60, channels=3, wording=wording)
        told = [text for text in quote.in_the_clear if "detected and kept" in text]
        assert [("not rounded" in text, "rounded to a public grid" in text) for text in told] == [
            (wording == 9, wording == 10)
        ] * said


def test_what_is_covered_for_nothing_does_not_overlap_since_11() -> None:
    """Nothing of an object is read, so it adds nothing to the cost of what it lies upon."""
    box, thing = (RegionRecord(Box(0, 0, 20, 20), Origin(kind), None) for kind in ("box", "object"))
    for records, wording, said in (
        ((box, thing), 10, True),
        ((box, thing), 11, False),
        ((thing, box, box), 11, True),
    ):
        quote = Quote(SINCE_6[1], records, width=90, height=60, channels=3, wording=wording)
        told = [text for text in quote.warnings() if "costs add" in text]
        assert bool(told) == said
        assert not any("object" in text for text in told) or wording == 10


def test_a_chosen_value_is_stated_as_not_covered_since_6() -> None:
    """Where nothing was chosen, nothing is said, and no older wording has said it."""
    one = RegionRecord(Box(0, 0, 20, 20), ORIGINS[2])
    for method, wording, said in ((SINCE_6[0], 6, True), (SINCE_6[0], 5, False), (METHODS[7], 6, False)):
        quote = Quote(method, (one,), width=90, height=60, channels=3, wording=wording)
        told = [text for text in quote.in_the_clear if "chosen by the user and not covered" in text]
        assert [text.partition(": ")[0] for text in told] == ["gender=female, tone=medium"] * said
