"""What the thesis says of figure 6.7, as differences of the same people's rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpveil_research.croft_2022_faces.claims import Claim
from dpveil_research.croft_2022_faces.plan import MARGIN, PRIVATE, SAME
from dpveil_research.croft_thesis_6_aam.measure import PHOTOS, Point
from dpveil_research.croft_thesis_6_aam.plan import ALONE, INSIDE, KEPT, LOOKS


def claims(dataset: str, points: Sequence[Point]) -> Iterator[Claim]:
    """Yield every claim at every setting at which the thesis makes it, by the strongest attack."""
    at = {(one.look, one.method, one.x): one.named for one in points}
    clean = at[PHOTOS, "", ""]
    for method in (PRIVATE, SAME):
        xs = [one.x for one in points if (one.look, one.method) == (INSIDE, method)]
        strong, weak = (xs[0], xs[-1]) if method == PRIVATE else (xs[-1], xs[0])
        for look in LOOKS:
            fall = at[look, method, weak] - at[look, method, strong]
            yield Claim("A1", f"{dataset}, {look}, {method} {weak} - {strong}", fall, low=0)
        left = at[INSIDE, method, strong] - KEPT * clean
        yield Claim("A2", f"{dataset}, {method} {strong}", left, low=0)
        for x in xs:
            about, own, alone = f"{dataset}, {method} {x}", at[INSIDE, method, x], at[ALONE, method, x]
            if method == SAME:
                yield Claim("A3", about, own - 1 / int(x), low=MARGIN)
                yield Claim("A4", about, alone - 1 / int(x), high=MARGIN)
            yield Claim("A5", about, own - alone, low=MARGIN)
