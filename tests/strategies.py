"""Guarantees and certificates of every kind, as Hypothesis makes them up."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from dpveil.core.certificate import Certificate, Output
from dpveil.core.envelope import Signature
from dpveil.core.guarantee import KINDS, Distance, Guarantee, Relation, Scope
from dpveil.core.region import Box, RegionRecord
from dpveil.core.region_origin import Origin

DISTANCES = st.sampled_from([None, *[Distance.of("d", codec="a")] * 8, Distance.of("d", codec="b")])
NUMBERS = st.fractions(0, 8, max_denominator=12)
FIELDS = {
    "pure": {"epsilon": NUMBERS},
    "approximate": {"epsilon": NUMBERS, "delta": st.fractions(0, 1, max_denominator=12)},
    "zcdp": {"rho": NUMBERS},
    "metric": {"epsilon": NUMBERS, "diameter": NUMBERS, "metric": st.just("d"), "distance": DISTANCES},
    "heuristic": {"broken_by": st.tuples(st.sampled_from("xyz"))},
}
RELATIONS = [Relation("any-image"), Relation("m-pixels", 4), Relation("m-pixels", 9), Relation("latent-cell")]
RELATIONS += [Relation("singular-values"), Relation("database-record")]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
WORDS = st.lists(TEXTS, max_size=3).map(tuple)
COUNTS = st.integers(1, 2**31)
assert set(FIELDS) == set(KINDS)


@st.composite
def guarantees(
    draw: st.DrawFn,
    kinds: list[str] | None = None,
    relations: list[Relation] | None = None,
    covers: str = "a",
) -> Guarantee:
    """One guarantee of these kinds, under one of these relations."""
    kind = draw(st.sampled_from(kinds or sorted(FIELDS)))
    given = {field: draw(values) for field, values in FIELDS[kind].items()}
    relation, scope = draw(st.sampled_from(relations or RELATIONS)), Scope(covers, ("size", covers))
    return Guarantee(kind=kind, relation=relation, scope=scope, **given)


ORIGINS = st.builds(
    Origin,
    kind=st.text(string.ascii_lowercase, min_size=1, max_size=9),
    finder=TEXTS,
    number=st.none() | COUNTS,
    found=st.booleans(),
    outlined=st.booleans(),
    grown_to=st.sampled_from([None, "JPEG"]),
    escapes=st.booleans(),
    fallback=st.booleans(),
)
BOXES = st.builds(Box, st.integers(0, 2**31), st.integers(0, 2**31), COUNTS, COUNTS)
OUTPUTS = st.builds(
    Output,
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    format=st.sampled_from(["png", "jpeg", "webp", "tiff", "bmp"]),
    width=COUNTS,
    height=COUNTS,
    channels=st.sampled_from([1, 3]),
)
SIGNATURES = st.builds(
    lambda point, number: Signature("58" + "66" * 31, point.hex() + number.to_bytes(32, "little").hex()),
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**256 - 1),
)
"""Well formed, and of nothing."""
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXTS


@st.composite
def certificates(draw: st.DrawFn) -> Certificate:
    """A certificate of any photo, whatever it says."""
    regions = draw(st.lists(st.builds(RegionRecord, BOXES, ORIGINS, st.none() | COUNTS), max_size=3))
    return Certificate(
        method=draw(st.none() | TEXTS),
        parameters=draw(st.dictionaries(TEXTS, VALUES, max_size=3)),
        request=draw(WORDS.filter(bool)),
        guarantees=tuple(draw(guarantees()) for _ in regions),
        regions=tuple(regions),
        composition=draw(st.none() | guarantees()),
        strength=draw(st.sampled_from(["strong", "moderate", "weak", "practically none", None])),
        accountant=draw(TEXTS),
        bits=draw(st.sampled_from(["secure", "seeded"])),
        missing=draw(WORDS),
        post_processing=draw(WORDS),
        warnings=draw(WORDS),
        output=draw(st.none() | OUTPUTS),
        signature=draw(st.none() | SIGNATURES),
    )
