"""What quotes say is in the clear, and warn of, by the origin of a region."""

from __future__ import annotations

from dpveil.core.origin import Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.faces import Attributes
from dpveil.mechanisms.method import Method
from dpveil.release.quote import Quote

HASH = "sha256:" + 64 * "0"
NONE_KEPT = Attributes(attributes="none", gallery=f"gallery {HASH}", model=f"attributes {HASH}")
CHOSEN = Attributes(attributes="gender=female,tone=medium", protect="head")


def quote(method: Method, *origins: Origin, masked: int | None = None) -> Quote:
    records = tuple(RegionRecord(Box(0, 0, 20, 20), origin, masked) for origin in origins)
    return Quote(method, records, width=90, height=60, channels=3)


def test_beside_a_kept_face_its_box_is_in_the_clear() -> None:
    """Its edge may follow from hidden pixels of its neighbours."""
    beside = Origin("face", "faces except=1", number=2, found=True, outlined=True)
    alone = Origin("face", "faces", number=2, found=True, cell=(23, 0, 10, 9, -1))
    said = [
        any("detected and kept" in text for text in quote(NONE_KEPT, origin, masked=99).in_the_clear)
        for origin in (beside, alone)
    ]
    assert said == [True, False]


def test_what_is_covered_for_nothing_does_not_overlap() -> None:
    """Nothing of an object is read, so it adds nothing to the cost of what it lies upon."""
    box, thing = Origin("box"), Origin("object")
    for origins, said in (((box, thing), False), ((thing, box, box), True)):
        costly = Attributes(attributes="gender=4")
        told = [text for text in quote(costly, *origins).warnings() if "costs add" in text]
        assert (bool(told), any("object" in text for text in told)) == (said, False)


def test_a_chosen_value_is_stated_as_not_covered() -> None:
    for method, said in ((CHOSEN, ["gender=female, tone=medium"]), (NONE_KEPT, [])):
        clear = quote(method, Origin("box", "0,0,20,20")).in_the_clear
        told = [text for text in clear if "chosen by the user and not covered" in text]
        assert [text.partition(": ")[0] for text in told] == said
