"""The interface of every photo method: a name, parameters, and a guarantee stated before anything is
drawn.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json, to_json
from dpveil.core.parameters import Parameter
from dpveil.core.photo import Photo
from dpveil.core.region import Region, RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.placement import Placement, Size
from dpveil.regions.finder import Finder, Order

if TYPE_CHECKING:
    from dpveil.accounting.account import Account

ALTERED: Final = "altered"
DRAWN: Final = "drawn"
TRAINED: Final = "trained"
UNEXPLAINED: Final = "See the page of the method."
"""Help of a parameter that has none."""


class Method(ABC):
    """A frozen dataclass of parameters that states its guarantee before anything is drawn.

    Concrete methods are never subclassed. Class attributes: `name` is the kebab-case name on the command line
    and in certificates, `kinds` the kinds of guarantee that the method can state, the default first, and
    `summary` one line for tables. `typical` are values of parameters without which nothing is spent, for
    comparisons and demonstrations where the user chose none. `help` explains each parameter in one line,
    besides those that a base class explains. `budgets` are the alternative sets of budget parameters, if
    there are several; `calibrations` names the accountant that chooses the noise, by kind of guarantee;
    `regions` is the default choice of regions. `one_scale` says that the noise of a region is a single
    number, so that equal `noise_scale` means equal noise.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    summary: ClassVar[str]
    source: ClassVar[str]
    typical: ClassVar[Mapping[str, Json]] = {}
    help: ClassVar[Mapping[str, str]] = {
        "epsilon": "The budget of each region.",
        "delta": "δ of an (ε, δ) guarantee.",
        "rho": "ρ of a zero-concentrated guarantee.",
        "block": "Side of a block in pixels.",
        "neighbourhood": "How many pixels neighbours differ in, or all; default: all.",
    }
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = ()
    calibrations: ClassVar[Mapping[str, str]] = {}
    regions: ClassVar[str] = "whole"
    one_scale: ClassVar[bool] = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the method with these parameters, as users write them."""
        return cls(**parameters)

    @classmethod
    def stated(cls, parameters: Mapping[str, Json]) -> Self:
        """Return the method with the parameters of a received certificate; opens no file.

        All parameters must be present and no others, so that none is taken from a default, which may be a
        file. Raises `InvalidParameter`.
        """
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for name in sorted({*names} ^ {*parameters}):
            problem = "is missing" if name in names else f"is not a parameter of {cls.name}"
            raise InvalidParameter(name, None, problem, hint=f"certificates state {', '.join(names)}")
        given = {name: parameters[name] for name in names}
        kinds = {name: inspect.getattr_static(cls, name) for name in names}
        return cls(**{n: None if value is None else kinds[n].stated(value) for n, value in given.items()})

    def with_budget(self, **budget: Any) -> Self:
        """Return the same method with another budget, such as `epsilon`; used by `explain`."""
        return replace(self, **budget)  # type: ignore[type-var]

    @classmethod
    def accepted_parameters(cls) -> tuple[str, ...]:
        """Return the names of the parameters that `of` accepts."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def options(cls) -> dict[str, tuple[str, str]]:
        """Return the placeholder (empty for a flag) and the help of every parameter, by name.

        This includes parameters that exist only to be refused with a reason.
        """
        words = {n: text for base in reversed(cls.__mro__) for n, text in vars(base).get("help", {}).items()}
        names = dict.fromkeys((*cls.accepted_parameters(), *inspect.signature(cls).parameters))
        kinds = {name: inspect.getattr_static(cls, name, None) for name in names}
        return {n: (getattr(kinds[n], "metavar", "VALUE"), words.get(n, UNEXPLAINED)) for n in names}

    @classmethod
    def unfit(cls) -> str:
        """Return why certificates cannot state the parameters, or an empty text if they can."""
        if "__dataclass_fields__" not in vars(cls):
            return "is not a dataclass"
        kinds = {field.name: inspect.getattr_static(cls, field.name, None) for field in fields(cls)}  # type: ignore[arg-type]
        plain = [name for name, kind in kinds.items() if not isinstance(kind, Parameter)]
        return f"has fields that are not parameters of dpveil.core: {', '.join(plain)}" if plain else ""

    @abstractmethod
    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the guarantee of one release of a height × width × channels region, before it is spent."""

    @property
    def also_replaced(self) -> str:
        """What is replaced around a region that was asked for, as a sentence; empty if nothing is."""
        return ""

    @property
    def kind(self) -> str:
        """The kind of guarantee, which depends on the parameters."""
        return self.guarantee(height=64, width=64, channels=1).kind

    @property
    def calibration(self) -> str:
        """The accountant that determined the noise; empty if a formula derives it from the budget."""
        return self.calibrations.get(self.kind, "") if self.calibrations else ""

    @abstractmethod
    def noise_scale(self, *, height: int, width: int, channels: int) -> float | None:
        """Return the noise scale in grey levels on the largest cell of such a region.

        This is the Laplace scale or the Gaussian standard deviation. For a method that draws levels instead
        of noise, it is the root mean squared error on mid-grey, or on the photos that the method is tuned
        for. None if levels get no noise.
        """

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise any error that would prevent a draw for a region of this size, before any budget is spent.

        It checks everything that follows from parameters and sizes alone, and may cache it for the draw.
        """
        self.noise_scale(height=height, width=width, channels=channels)

    def accepts(self, finders: Sequence[Finder]) -> tuple[Finder, ...]:
        """Return the region finders as this method uses them. Raises `InvalidParameter` for others."""
        return tuple(finders)

    def visible(self, photo: Photo, finders: Sequence[Finder]) -> Photo:
        """Return the photo in which the finders search: this one, unless the method covers parts first."""
        return photo

    @property
    def order(self) -> Order | None:
        """In which order found regions are numbered, for methods that show less than their boxes; None: in
        the finder's own.
        """
        return None

    def order_in(self, photo: Photo, finders: Sequence[Finder]) -> Order | None:
        """Return that `order` for a photo that was searched with these finders."""
        return self.order

    @abstractmethod
    def place(self, photo: Photo, regions: Sequence[Region]) -> Placement:
        """Return the regions of a photo as they will be replaced; nothing is drawn.

        Raises `RegionError` if a region does not fit the method.
        """

    def shown_by_place(self, record: RegionRecord) -> tuple[str, ...]:
        """Return what the position of a region reveals besides its origin."""
        return ()

    @property
    def set_by_user(self) -> tuple[str, ...]:
        """What a release shows because the user chose it, whatever the photo shows; it is not covered."""
        return ()

    @property
    def made(self) -> str:
        """How what is shown came to be: ALTERED from the photo, DRAWN by code, or by a TRAINED model or
        gallery of faces.
        """
        return ALTERED

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on parameters that may not be meant, for whoever chose them; no certificate has them."""
        return ()

    def of_region(self, record: RegionRecord) -> Method:
        """Return the method that replaces a region and states its guarantee: this one, unless it is for
        other kinds of regions.
        """
        return self

    def cost_of_disjoint(self, total: Guarantee, sizes: Sequence[Size]) -> Guarantee:
        """Return the total cost of disjoint regions of these sizes; `total` is the sum of their costs."""
        return total

    def account(self, *, height: int, width: int, channels: int) -> Account | None:
        """Return the cost of the noise of one release of a region as ε, ρ and (ε, δ), if known."""
        return None

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> Account | None:
        """Return the cost of the noise of several disjoint regions if `changed` pixels (None: all) differ.

        `sizes` are those of the regions, each released once; the changed pixels may lie in any of them. None
        if no better rule than addition and group privacy is known.
        """
        return None

    def pair_distances(self) -> Mapping[float, float] | None:
        """Return the distances between people, by share of pairs, for a metric guarantee."""
        return None

    def apart(self, points: np.ndarray) -> np.ndarray | None:
        """Return the distances of a metric guarantee between points of `Placement.point`, one a row.

        A square of floats, rounded up; None where they are not known.
        """
        return None

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON, rationals exact."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value) for name, value in values.items()}


def plain(value: Any) -> Json:
    """Return a parameter as JSON: rationals exact, values that JSON lacks as text."""
    if isinstance(value, Fraction):
        return to_json(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
