"""The guarantee of a release, as frozen data, independent of samplers and accountants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from dpveil.core.parameters import check_count
from dpveil.core.rationals import Json, Number, exact, show, to_json
from dpveil.errors import InvalidParameter

RELATIONS: Final = {
    "m-pixels": "two photos of the same size that differ in at most {pixels}{each} with all its channels",
    "any-image": "any two photos of the same size",
    "latent-cell": "any two faces, whatever their codes, which are clipped to a public box",
    "singular-values": "two photos with the same ordered singular vectors U and V, as computed",
    "database-record": "two databases that differ in one record",
    "any-database": "any two databases",
    "person": "two sets of photos of the same number of people, of whom one is replaced with all photos",
}
"""Neighbouring relations by name, each as a phrase that completes "neighbours are"."""

IMPLIED: Final = {
    "latent-cell": ("any-image", "m-pixels", "singular-values"),
    "any-image": ("m-pixels", "singular-values"),
    "any-database": ("database-record",),
}
"""For each relation, others under which its guarantees also hold; `Relation.implies` has the proof."""

DATABASES: Final = ("any-database", "database-record")
"""Relations of databases, whose answers may be unbounded."""

KINDS: Final = {
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "zcdp": ("rho",),
    "metric": ("epsilon", "metric", "diameter"),
    "heuristic": ("broken_by",),
}
"""The fields that are set in each kind of guarantee."""


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is one.

    >>> count_noun(1, "region"), count_noun(1024, "region")
    ('one region', '1,024 regions')
    """
    return f"one {noun}" if count == 1 else f"{count:,} {noun}s"


def pixels(count: int) -> str:
    """Return a number of pixels in words."""
    return count_noun(count, "pixel")


NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
MOST_SETTINGS: Final = 16  # the largest number of settings of one distance


@dataclass(frozen=True)
class Distance:
    """A metric on the protected data: its `name` and every setting that it depends on, such as the codec.

    The values of settings are numbers and strings, as in certificates. Equal objects stand for equal
    functions. Raises `InvalidParameter` for a malformed name, a value of another type, and too many settings.

    >>> Distance.of("chord", clip=5, codec="ab") == Distance.of("chord", codec="ab", clip=5)
    True
    """

    name: str
    settings: tuple[tuple[str, str | int | float], ...] = ()

    def __post_init__(self) -> None:
        names: list[object] = [self.name, *(name for name, _ in self.settings)]
        values: list[object] = [value for _, value in self.settings]
        if (
            not all(isinstance(name, str) and NAME.fullmatch(name) for name in names)
            or len(values) > MOST_SETTINGS
        ):
            raise InvalidParameter("distance", None, "has a name that is none", hint="such as box-mean")
        if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values):
            raise InvalidParameter("distance", self.name, "has a setting that is no number and no text")

    @classmethod
    def of(cls, name: str, /, **settings: Any) -> Distance:
        return cls(name, tuple(sorted(settings.items())))

    def to_json(self) -> dict[str, Json]:
        return {"name": self.name, "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, data: Any, where: str) -> Distance:
        """Return the distance that `to_json` wrote; raises `InvalidParameter` for anything else."""
        try:
            return cls.of(data["name"], **data["settings"])
        except (KeyError, TypeError) as error:
            raise InvalidParameter(where, None, "is no distance") from error


@dataclass(frozen=True)
class Relation:
    """Which pairs of inputs are neighbours; `m` is a number of pixels and is set for `m-pixels` only.

    Raises `InvalidParameter` for an unknown name or a missing m. Source: docs, "Guarantees".

    >>> Relation("m-pixels", 16).in_words()
    'two photos of the same size that differ in at most 16 pixels, each with all its channels'
    """

    name: str
    m: int | None = None

    def __post_init__(self) -> None:
        if self.name not in RELATIONS:
            raise InvalidParameter("relation", self.name, "is unknown", hint=f"one of {', '.join(RELATIONS)}")
        if (self.m is not None) != (self.name == "m-pixels"):
            raise InvalidParameter(
                "m", self.m, f"does not fit relation {self.name}", hint="m is for m-pixels"
            )
        if self.m is not None:
            check_count(self.m, "m")

    def implies(self, other: Relation) -> bool:
        """Return whether every guarantee under this relation provably holds under `other` too.

        The scope stays the same: neighbours agree on everything that is released in the clear.

        *Proof.* A guarantee relates the output distributions of any two neighbours, so it suffices that all
        neighbours under `other` are neighbours under this relation. Photos that differ in at most m pixels
        have the same size, and differ in at most m′ for every m′ > m. U has a row for each row of pixels and
        V one for each column, so photos with the same U and V have the same size. Two photos of the same size
        with the same detected face boxes and landmarks, which are in the clear, give two crops by the same
        resampling; their codes are clipped to the box in any case, so these are two faces under latent-cell.
        Two databases that differ in one record are two databases. ∎ Nothing else is implied: photos that
        differ in m pixels need not have the same U and V, photos with the same U and V may differ in all
        pixels, and two faces may come from photos of different sizes. Group privacy (more pixels) changes the
        numbers, so it is not an implication.

        >>> Relation("latent-cell").implies(Relation("any-image"))
        True
        >>> Relation("m-pixels", 16).implies(Relation("m-pixels", 256))
        False
        """
        if self.name == other.name:
            return self.m is None or other.m is None or self.m >= other.m
        return other.name in IMPLIED.get(self.name, ())

    def in_words(self) -> str:
        """Return the relation as a phrase that completes "neighbours are"."""
        each = "," if self.m == 1 else ", each"
        return RELATIONS[self.name].format(pixels=pixels(self.m or 0), each=each)

    def __str__(self) -> str:
        return self.name if self.m is None else f"m-pixels (m = {self.m})"

    def to_json(self) -> dict[str, Json]:
        return {"name": self.name} | ({} if self.m is None else {"m": self.m})


@dataclass(frozen=True)
class Scope:
    """What a guarantee covers, and what is released unprotected beside it."""

    covers: str
    in_the_clear: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {"covers": self.covers, "in_the_clear": list(self.in_the_clear)}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee of one release. `epsilon` has no unit; `relation` defines the neighbours.

    Exactly the fields of its `kind` are set (`KINDS`): ε for pure, ε and δ for approximate, ρ for zcdp, ε
    with the name of the metric and the diameter of the domain for metric (None for unbounded answers), and
    the known attacks for heuristic. Numbers are exact rationals. `distance` is the metric with its settings,
    or None where they are unknown, as for a user's own query. Raises `InvalidParameter` for fields that do
    not fit the kind, negative numbers, and δ above 1. Source: docs, "Guarantees".

    >>> str(Guarantee(kind="pure", epsilon=0.5, relation=Relation("any-image"), scope=Scope("the photo")))
    '0.5-DP, any-image'
    """

    kind: str
    relation: Relation
    scope: Scope = field(default=Scope(""), compare=False)
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    metric: str | None = None
    diameter: Fraction | None = None
    broken_by: tuple[str, ...] | None = field(default=None)
    distance: Distance | None = None

    def __init__(
        self,
        *,
        kind: str,
        relation: Relation,
        scope: Scope = Scope(""),
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        metric: str | None = None,
        diameter: Number | None = None,
        broken_by: tuple[str, ...] | None = None,
        distance: Distance | None = None,
    ) -> None:
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "diameter": diameter}
        numbers = {name: None if value is None else exact(value, name) for name, value in given.items()}
        words = {"metric": metric, "broken_by": broken_by, "distance": distance}
        for name, value in {"kind": kind, "relation": relation, "scope": scope, **numbers, **words}.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if self.kind not in KINDS:
            raise InvalidParameter("kind", self.kind, "is unknown", hint=f"one of {', '.join(KINDS)}")
        for name in ("epsilon", "delta", "rho", "metric", "diameter", "broken_by"):
            if name == "diameter" and self.kind == "metric" and self.relation.name in DATABASES:
                continue  # unbounded answers have no diameter
            if (getattr(self, name) is not None) != (name in KINDS[self.kind]):
                problem = "is missing" if name in KINDS[self.kind] else "does not belong"
                raise InvalidParameter(name, getattr(self, name), f"{problem} in a {self.kind} guarantee")
        if self.distance is not None and self.kind != "metric":
            raise InvalidParameter("distance", None, f"does not belong in a {self.kind} guarantee")
        for name in ("epsilon", "delta", "rho", "diameter"):
            number = getattr(self, name)
            if number is not None and number < 0:
                raise InvalidParameter(name, number, "is negative")
        if self.delta is not None and self.delta > 1:
            raise InvalidParameter("delta", self.delta, "is above 1")

    @property
    def free(self) -> bool:
        """Whether the release is independent of what it protects: 0-DP, which composes at no cost."""
        return self.epsilon == 0 and not self.delta

    @property
    def formal(self) -> bool:
        return self.kind != "heuristic"

    def __str__(self) -> str:
        numbers = {n: show(v) for n in ("epsilon", "delta", "rho", "diameter") if (v := getattr(self, n))}
        form = {
            "pure": "{epsilon}-DP, {relation}",
            "approximate": "({epsilon}, {delta})-DP, {relation}",
            "zcdp": "{rho}-zCDP, {relation}",
            "metric": "{epsilon}·d-privacy, d = {metric}, diameter {diameter}, {relation}",
            "heuristic": "no formal guarantee",
        }[self.kind]
        zeros = {"epsilon": "0", "delta": "0", "rho": "0"}
        zeros["diameter"] = "without end" if self.diameter is None else "0"
        return form.format(**{**zeros, **numbers, "relation": self.relation, "metric": self.metric})

    def numbers(self) -> dict[str, Json]:
        """Return the JSON object of a certificate: only the fields of this kind, and no sentence."""
        data: dict[str, Json] = {"kind": self.kind, "relation": self.relation.to_json()}
        for name in KINDS[self.kind]:
            value = getattr(self, name)
            data[name] = to_json(value) if isinstance(value, Fraction) else value
            if isinstance(value, tuple):
                data[name] = [*value]
        measured = {} if self.distance is None else {"distance": self.distance.to_json()}
        return data | measured

    def to_json(self) -> dict[str, Json]:
        return self.numbers() | {"scope": self.scope.to_json()}


def strength_text(guarantee: Guarantee, grade: str | None) -> str:
    """Return a strength, with the number of pixels it is about unless that is all."""
    m = guarantee.relation.m
    return f"{grade}" if m is None else f"{grade} about any {pixels(m)}"
