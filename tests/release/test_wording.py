"""What quotes say is in the clear, and warn of, by the origin of a region."""

from __future__ import annotations

from dpveil.core.origin import Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.faces import Attributes
from dpveil.mechanisms.method import Method
from dpveil.release.quote import Quote


def quote(method: Method, *origins: Origin, masked: int | None = None) -> Quote:
    records = tuple(RegionRecord(Box(0, 0, 20, 20), origin, masked) for origin in origins)
    return Quote(method, records, width=90, height=60, channels=3)


def test_what_is_covered_for_nothing_does_not_overlap() -> None:
    """Nothing of an object is read, so it adds nothing to the cost of what it lies upon."""
    box, thing = Origin("box"), Origin("object")
    for origins, said in (((box, thing), False), ((thing, box, box), True)):
        costly = Attributes(attributes="gender=4", gallery="drawn")
        told = [text for text in quote(costly, *origins).warnings() if "costs add" in text]
        assert (bool(told), any("object" in text for text in told)) == (said, False)
