"""The interface of every photo method: parameters, a guarantee before anything is drawn, and a placement."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypedDict

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.guarantee import Guarantee
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json, to_json
from dpveil.core.region import Region, RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource
from dpveil.regions.finder import Finder, Order

if TYPE_CHECKING:
    from dpveil.accounting.draw_cost import Account

Image = UInt8[np.ndarray, "h w c"]
Step = Callable[[Image], Image]
"""Post-processing within each region, such as a filter."""


class Size(TypedDict):
    """The size of a region in pixels, and its number of channels."""

    height: int
    width: int
    channels: int


class Placement(ABC):
    """The regions of one photo in the order of the request, each grown and placed by a method."""

    photo: Photo
    regions: tuple[Region, ...]
    notes: tuple[str, ...] = ()
    """Notes for the owner of the original, which no certificate has."""

    @abstractmethod
    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with every region drawn and then passed through `steps`."""


ALTERED: Final = "altered"
DRAWN: Final = "drawn"
TRAINED: Final = "trained"


class Method(ABC):
    """A frozen dataclass of parameters that states its guarantee before anything is drawn.

    Concrete methods are never subclassed. Class attributes: `name` is the kebab-case name on the command line
    and in certificates, `kinds` the kinds of guarantee that the method can state, the default first, and
    `summary` one line for tables. `typical` are values of parameters without which nothing is spent, for
    comparisons and demonstrations where the user chose none. `help` explains each parameter in one line,
    besides those that a base class explains. `budgets` are the alternative sets of budget parameters, if
    there are several; `regions` is the default choice of regions.

    A pixel method needs `guarantee` and the `_draw` of `PixelMethod`. All else has a default here: what
    faces need (`accepts` to `of_region`), and what accounts know beyond addition (from `calibration` on).
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
    regions: ClassVar[str] = "whole"
    draws_faces: ClassVar[bool] = False

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

    @abstractmethod
    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the guarantee of one release of a height × width × channels region, before it is spent."""

    @property
    def kind(self) -> str:
        """The kind of guarantee, which depends on the parameters."""
        return self.guarantee(height=64, width=64, channels=1).kind

    def noise_scale(self, *, height: int, width: int, channels: int) -> float | None:
        """Return the noise scale in grey levels on the largest cell of such a region.

        This is the Laplace scale or the Gaussian standard deviation. For a method that draws levels instead
        of noise, it is the root mean squared error on mid-grey, or on the photos that the method is tuned
        for. None if levels get no noise.
        """
        return None

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise any error that would prevent a draw for a region of this size, before any budget is spent.

        It checks everything that follows from parameters and sizes alone, and may cache it for the draw.
        """
        self.noise_scale(height=height, width=width, channels=channels)

    def accepts(self, finders: Sequence[Finder]) -> tuple[Finder, ...]:
        """Return the region finders as this method uses them. Raises `InvalidParameter` for others."""
        return tuple(finders)

    def search(self, photo: Photo, finders: Sequence[Finder]) -> tuple[Photo, Order | None]:
        """Return the photo in which the finders search, of which the method may cover parts first, and in
        which order found regions are numbered there; None: in the finder's own.
        """
        return photo, None

    @property
    def order(self) -> Order | None:
        """The order in which found regions are numbered, for methods that show less; None: the finder's."""
        return None

    @abstractmethod
    def place(self, photo: Photo, regions: Sequence[Region]) -> Placement:
        """Return the regions of a photo as they will be replaced; nothing is drawn.

        Raises `RegionError` if a region does not fit the method.
        """

    @property
    def also_replaced(self) -> str:
        """What is replaced around a region that was asked for, as a sentence; empty if nothing is."""
        return ""

    def shown_by_place(self, record: RegionRecord) -> tuple[str, ...]:
        """Return what the position of a region reveals besides its origin."""
        return ()

    @property
    def set_by_user(self) -> tuple[str, ...]:
        """What a release shows because the user chose it, whatever the photo shows; it is not covered."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on parameters that may not be meant, for whoever chose them; no certificate has them."""
        return ()

    @property
    def made(self) -> str:
        """How what is shown came to be: ALTERED, DRAWN by code, or by a TRAINED model or gallery of faces."""
        return ALTERED

    def of_region(self, record: RegionRecord) -> Method:
        """Return what replaces a region and states its guarantee: this, or a method for its kind."""
        return self

    @property
    def calibration(self) -> str:
        """The accountant that determined the noise; empty if a formula derives it from the budget."""
        return ""

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

    def parameters(self) -> dict[str, Json]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value) for name, value in values.items()}


def plain(value: Any) -> Json:
    """Return a parameter as JSON: rationals exact, values that JSON lacks as text."""
    if isinstance(value, Fraction):
        return to_json(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
