"""What every method has in common: a name, parameters, and a guarantee that is stated before it draws."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json, to_json
from dpveil.core.parameters import Parameter
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.placement import Placement, Size
from dpveil.noise.bits import BitSource
from dpveil.regions import Finder

if TYPE_CHECKING:
    from dpveil.accounting.account import Account

UNEXPLAINED: Final = "See what is written about the method."


class Method(ABC):
    """A frozen dataclass of parameters that states its guarantee before it draws.

    Concrete methods are never subclassed. `name` is the kebab-case name of command line and certificates,
    `kinds` are the kinds of guarantee that it can state, the usual one first, `summary` is one line for
    tables. `typical` are values of required parameters that comparisons and demonstrations use where the user
    chose none. `help` says in one line what each parameter is, beside those that a base class explains.
    `budgets` are the currencies that it takes, if there are several, `regions` what it is applied to where
    the user says nothing. `one_scale` says that the noise of a region is one number, so that an equal
    `noise_scale` is equal noise.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    summary: ClassVar[str]
    source: ClassVar[str]
    typical: ClassVar[Mapping[str, Json]] = {}
    help: ClassVar[Mapping[str, str]] = {
        "epsilon": "What each region may cost.",
        "delta": "δ of an (ε, δ) promise.",
        "rho": "ρ of a zero-concentrated promise.",
        "block": "Side of a block in pixels.",
        "neighbourhood": "Pixels in which neighbours differ, or all; default: all.",
    }
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = ()
    regions: ClassVar[str] = "whole"
    one_scale: ClassVar[bool] = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the method with these parameters, as users write them."""
        return cls(**parameters)

    @classmethod
    def stated(cls, parameters: Mapping[str, Json]) -> Self:
        """Return the method with the parameters that a received certificate states; never opens anything.

        All of them have to be there and no other, so that none is taken from a default, which may be a file.
        Raises `InvalidParameter`.
        """
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for name in sorted({*names} ^ {*parameters}):
            problem = "is missing" if name in names else f"is not a parameter of {cls.name}"
            raise InvalidParameter(name, None, problem, hint=f"certificates state {', '.join(names)}")
        given = {name: parameters[name] for name in names}
        kinds = {name: inspect.getattr_static(cls, name) for name in names}
        return cls(**{n: None if value is None else kinds[n].stated(value) for n, value in given.items()})

    def with_budget(self, **budget: Any) -> Self:
        """Return the same method with another budget, such as `epsilon`: what `explain` tries."""
        return replace(self, **budget)  # type: ignore[type-var]

    @classmethod
    def accepted_parameters(cls) -> tuple[str, ...]:
        """Return the names that `of` takes."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def options(cls) -> dict[str, tuple[str, str]]:
        """Return name, what stands for the value (nothing for a flag) and help of every parameter.

        Among them are parameters that exist to be refused with the reason.
        """
        words = {n: text for base in reversed(cls.__mro__) for n, text in vars(base).get("help", {}).items()}
        names = dict.fromkeys((*cls.accepted_parameters(), *inspect.signature(cls).parameters))
        kinds = {name: inspect.getattr_static(cls, name, None) for name in names}
        return {n: (getattr(kinds[n], "metavar", "VALUE"), words.get(n, UNEXPLAINED)) for n in names}

    @classmethod
    def unfit(cls) -> str:
        """Return what keeps certificates from stating the parameters; empty where nothing does."""
        if "__dataclass_fields__" not in vars(cls):
            return "is no dataclass"
        kinds = {field.name: inspect.getattr_static(cls, field.name, None) for field in fields(cls)}  # type: ignore[arg-type]
        plain = [name for name, kind in kinds.items() if not isinstance(kind, Parameter)]
        return f"has fields that are no parameters of dpveil.core: {', '.join(plain)}" if plain else ""

    @abstractmethod
    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return what one release of a height × width × channels region will cost, before spending it."""

    @property
    def kind(self) -> str:
        """The kind of its guarantee, which follows from the parameters."""
        return self.guarantee(height=64, width=64, channels=1).kind

    @property
    def calibration(self) -> str:
        """Which accountant chose the noise; empty where it follows from the budget by a formula."""
        return ""

    @abstractmethod
    def noise_scale(self, *, height: int, width: int, channels: int) -> float | None:
        """Return the noise scale in grey levels on the largest cell of such a region.

        That is Laplace's scale or Gauss's standard deviation; for a method that draws levels instead of
        noise, the root of the mean squared error that it makes on mid-grey, or on the photos that it is tuned
        to; None where levels get no noise.
        """

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise what would keep a region of this size from being drawn: asked before anything is paid.

        Whatever can be known from parameters and sizes alone is known here, and may be kept for the draw.
        """
        self.noise_scale(height=height, width=width, channels=channels)

    def accepts(self, finders: Sequence[Finder]) -> tuple[Finder, ...]:
        """Return the finders as this method takes them; raises `InvalidParameter` for others."""
        return tuple(finders)

    @abstractmethod
    def place(self, photo: Photo, regions: Sequence[Region]) -> Placement:
        """Return the regions of a photo as they will be replaced; nothing is drawn.

        Raises `RegionError` where one does not fit the method.
        """

    def shown_by_place(self, *, found: bool) -> tuple[str, ...]:
        """Return what the place of a region shows beside its origin; `found` as in `Origin`."""
        return ()

    def cost_of_disjoint(self, total: Guarantee, sizes: Sequence[Size]) -> Guarantee:
        """Return what regions of these sizes cost together; no two overlap, and `total` is their sum."""
        return total

    def account(self, *, height: int, width: int, channels: int) -> Account | None:
        """Return what the noise of one release of a region costs in every currency, where that is known."""
        return None

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> Account | None:
        """Return what the noise that it draws costs where `changed` pixels (None: all) are changed.

        `sizes` are those of regions without a common pixel, each released once, and the pixels may lie in
        any of them. None where no better rule is known than adding up and group privacy.
        """
        return None

    def pair_distances(self) -> Mapping[float, float] | None:
        """Return how far people lie apart, by shares of pairs, where the promise is a metric one."""
        return None

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON, rationals exact."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value) for name, value in values.items()}


def plain(value: Any) -> Json:
    """Return a parameter as JSON: rationals exact, and what is no JSON as its own words."""
    if isinstance(value, Fraction):
        return to_json(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def check_bits(bits: object) -> BitSource:
    """Return a source of bits, or raise `InvalidParameter`."""
    if not isinstance(bits, BitSource):
        raise InvalidParameter(
            "bits", type(bits).__name__, "is not a source of bits", hint="give dpveil.SecureBits()"
        )
    return bits
