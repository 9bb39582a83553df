"""The tables of the page on guarantees are those of the code: kinds, relations, and what composes."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from dpveil.accounting import compose
from dpveil.accounting.compose import RULES
from dpveil.core.guarantee import IMPLIED, KINDS, RELATIONS, Distance, Guarantee, Relation, Scope
from dpveil.errors import UnsupportedRelation

PAGE = (Path(__file__).parent.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
WORDS = {
    "epsilon": "ε",
    "delta": "δ",
    "rho": "ρ",
    "metric": "the distance d in words",
    "diameter": "its diameter",
    "broken_by": "what is known to break it",
}
"""How the page calls the fields of a guarantee."""
PHOTO = Scope("the photo")


def table(head: str) -> list[list[str]]:
    """Return the rows of the table on the page whose first column has this head."""
    rows = PAGE.split(f"| {head} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def of_kind(kind: str, number: str = "0.25") -> Guarantee:
    given = dict.fromkeys(KINDS[kind], number) | {"metric": "d", "broken_by": ("looking",)}
    relation = Relation("any-image")
    distance = Distance.of("d") if kind == "metric" else None
    stated = {name: given[name] for name in KINDS[kind]}
    return Guarantee(kind=kind, relation=relation, scope=PHOTO, distance=distance, **stated)


def test_kinds_and_their_numbers_are_those_of_the_code() -> None:
    page = {kind: numbers for kind, _, numbers in table("kind")}
    assert page == {f"`{kind}`": ", ".join(WORDS[name] for name in names) for kind, names in KINDS.items()}


def test_relations_and_their_words_are_those_of_the_code() -> None:
    page = dict(table("relation"))
    assert page == {
        f"`{name}`": words.format(pixels="m pixels", each=", each") for name, words in RELATIONS.items()
    }


def test_rules_of_composition_are_those_of_the_code() -> None:
    rows = [re.findall(r"`(\w+)`", together) for together, _ in table("together")]
    assert {frozenset(pair) for pair in rows if len(pair) == 2} == set(RULES)
    assert ["heuristic"] in rows
    for pair in combinations_with_replacement(KINDS, 2):
        parts = [of_kind(kind) for kind in pair]
        if "heuristic" in pair:
            assert compose(parts).kind == "heuristic"
        elif frozenset(pair) in RULES:
            assert compose(parts).formal
        else:
            with pytest.raises(UnsupportedRelation):
                compose(parts)


def test_numbers_add_as_the_page_says() -> None:
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    says = dict(table("together"))
    assert says["`pure` and `approximate`"] == "ε adds, δ stays"
    both = compose([of_kind("pure"), of_kind("approximate")])
    assert (both.kind, both.epsilon, both.delta) == ("approximate", half, quarter)
    assert says["`approximate` and `approximate`"] == "ε adds, δ adds, up to 1"
    assert compose([of_kind("approximate")] * 2).delta == half
    assert compose([of_kind("approximate")] * 5).delta == 1
    assert "ρ = ε²/2" in says["`pure` and `zcdp`"]
    assert compose([of_kind("pure"), of_kind("zcdp")]).rho == quarter + quarter**2 / 2
    assert "the diameter is the larger one" in says["`metric` and `metric`"]
    far = compose([of_kind("metric"), of_kind("metric", "0.5")])
    assert (far.epsilon, far.diameter) == (quarter + half, half)


def test_implications_are_those_of_the_code() -> None:
    page = {name.strip("`"): tuple(re.findall(r"`([\w-]+)`", others)) for name, others, _ in table("under")}
    assert {name: others for name, others in page.items() if name != "m-pixels"} == IMPLIED
    assert page["m-pixels"] == ("m-pixels",)
