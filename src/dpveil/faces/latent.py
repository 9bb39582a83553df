"""Faces in latent space: encoded, released by a mechanism on codes in a public box, and decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Self, cast

import numpy as np

from dpveil.assets.file_reference import AssetField, Reference
from dpveil.assets.trained_files import FILES
from dpveil.codecs import CODEC, Bounds, Codec, Statistics
from dpveil.codecs.statistics import Codes
from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Guarantee
from dpveil.core.parameters import Between, OneOf, OptionalPositive
from dpveil.core.rationals import Json, Number
from dpveil.core.registry import LATENT
from dpveil.errors import DPVeilError, InvalidParameter, UnknownName, UsageError, suggestion
from dpveil.faces.attribute_budgets import (
    KEPT,
    NONE,
    AttributeBudgets,
    Budgets,
    budgets_text,
    chosen_values,
    large_budget_notes,
)
from dpveil.faces.attribute_model import CROP_SIDE, VALUES, AttributeModel
from dpveil.faces.attributes_method import READER
from dpveil.faces.base import Crops, FaceMethod
from dpveil.faces.geometry.align import Frame
from dpveil.mechanisms.latent import LatentMechanism
from dpveil.mechanisms.latent.base import LIKELY, SNAPPED
from dpveil.mechanisms.latent.mixtures import likely_in
from dpveil.mechanisms.latent.posterior import Allocation, likely
from dpveil.mechanisms.rank_choice import RandomisedResponse
from dpveil.noise.bits import BitSource, check_bits
from dpveil.opencv import cv2

DEFAULT_MECHANISMS: Final = {"pure": "box-truncated-laplace", "zcdp": "box-gaussian"}
"""Default mechanism for each kind of guarantee."""
METRICS: Final = {name: kind.metric for name, kind in LATENT.items() if kind.metric is not None}
"""The metric of each mechanism with a metric guarantee."""


def of_kind(kind: str, metric: object) -> str:
    """Return the default mechanism of a kind of guarantee; for "metric", the one with that metric."""
    if kind != "metric":
        return DEFAULT_MECHANISMS[kind]
    if metric is None:
        hint = f"epsilon is for one unit of a distance, so name it: {' or '.join(METRICS.values())}"
        raise InvalidParameter("metric", None, "is missing", hint=hint)
    named = [mechanism for mechanism, its in METRICS.items() if its == metric]
    if not named:
        raise UnknownName("metric", str(metric), METRICS.values())
    return named[0]


@dataclass(frozen=True)
class CodeSpaceFromCertificate:
    """A code space of which only the length is known, from a certificate.

    Everything else needs the codec's file, and raises `ModelError` if that is not available.
    """

    codec: Reference

    @property
    def length(self) -> int:
        return int(self.codec.length or 0)

    @property
    def _known(self) -> Statistics:
        known: Statistics = self.codec.held.statistics
        return known

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        return self._known.column_energy

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        return self._known.deviations

    def bounds(self, clip: Number = 0) -> Bounds:
        return self._known.bounds(clip)

    def radius(self, clip: Number = 0) -> float:
        return self._known.radius(clip)


Answers = Mapping[str, Int64[np.ndarray, " n"]]
"""For each attribute the index of the value that is told, for each of n faces."""


@dataclass(frozen=True)
class DecoderInputs:
    """What a decoder is told of `attributes`: values after randomised response, or chosen by the user.

    Raises `InvalidParameter` for an attribute that the codecs of this kind have no input for, and for one
    with neither budget nor value.
    """

    attributes: Budgets
    codec: type[Codec]

    def __post_init__(self) -> None:
        for name, own in self.attributes:
            if name not in self.codec.attributes:
                able = ", ".join(self.codec.attributes) or "none: choose another codec, such as gan"
                problem = f"is not what a decoder of {self.codec.name} can be told"
                raise InvalidParameter(KEPT, name, problem, hint=f"it takes {able}")
            if own is None:
                hint = f"such as {name}=2, beside the budget of the code; or {name}={VALUES[name][0]}"
                raise InvalidParameter(KEPT, name, "has no budget", hint=hint)

    @cached_property
    def costs(self) -> tuple[tuple[str, Fraction], ...]:
        """The attributes that are read, each with its ε."""
        return tuple((name, own) for name, own in self.attributes if isinstance(own, Fraction))

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The attributes whose value the user chose, and that value."""
        return chosen_values(self.attributes)

    @cached_property
    def responses(self) -> dict[str, RandomisedResponse]:
        return {
            name: RandomisedResponse(epsilon=budget, values=len(VALUES[name])) for name, budget in self.costs
        }

    @property
    def total(self) -> Fraction:
        """The sum of the budgets: all that the answers cost, for any two faces."""
        return sum((budget for _, budget in self.costs), Fraction(0))

    @property
    def written(self) -> str:
        """Budgets and chosen values as they are written on the command line."""
        return budgets_text((name, own) for name, own in self.attributes if own is not None)

    def check(self, model: AttributeModel) -> None:
        """Raise `InvalidParameter` unless the model reads all that is asked of it."""
        for name, _ in self.costs:
            if model.values.get(name) != VALUES[name]:
                hint = f"the model reads {', '.join(model.values)}"
                raise InvalidParameter(KEPT, name, "is not what the model reads", hint=hint)

    def answers(self, crops: Crops, model: AttributeModel | None, bits: BitSource) -> Answers:
        """Return what is told: readings of the crops after randomised response, and the chosen values."""
        read = {} if model is None else model.read(_sized(crops))
        drawn = {name: response.draw(read[name], bits) for name, response in self.responses.items()}
        picked = {
            name: np.full(len(crops), VALUES[name].index(word), np.int64)
            for name, word in self.chosen.items()
        }
        return drawn | picked

    def decoded(self, codec: Codec, codes: Codes, answers: Answers) -> Crops:
        """Return the decoded crops of codes whose decoder is told the answers, and no more."""
        if not answers:
            return codec.decode(codes)
        rows = np.stack([*answers.values()], axis=1)
        out = np.empty((len(codes), *codec.canvas), np.uint8)
        for row in np.unique(rows, axis=0):
            own = (rows == row).all(axis=1)
            inputs = (codec.attributes[name] for name in answers)
            given = {name: levels[at] for (name, levels), at in zip(inputs, row, strict=True)}
            out[own] = cast("Any", codec).render(codes[own], **given)
        return out


def _sized(crops: Crops) -> Crops:
    if crops.shape[1:3] == (CROP_SIDE, CROP_SIDE):
        return crops
    way = cv2.INTER_AREA if crops.shape[1] > CROP_SIDE else cv2.INTER_CUBIC
    return np.stack([cv2.resize(crop, (CROP_SIDE, CROP_SIDE), interpolation=way) for crop in crops])


OWN: Final = ("epsilon", "rho", "allocation", "ratio")  # parameters that only some mechanisms have
WRITTEN: Final = "guarantee"  # the parameter of `of` that chooses a mechanism by its kind of guarantee
GREY: Final = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in luma (ITU-R BT.601)."""


@dataclass(frozen=True, kw_only=True)
class Latent(FaceMethod):
    """A face is encoded, a latent mechanism releases a private code, and that code is decoded.

    `codec` is "default", a model file or a `Codec`; certificates contain its name, length and hash.
    `mechanism` is a row of `mechanisms.latent`: by default "box-truncated-laplace" for `epsilon`, "box-
    gaussian" for `rho`. A mechanism with a metric guarantee needs `metric`, the name of its distance; its
    epsilon is per unit of that distance. `clip` is the percentage of public codes that the box leaves out at
    either end of each side, `allocation` how a budget is divided if the mechanism divides it: "equal",
    "optimal" or weights, see `Allocation`. `ratio` is the largest noise relative to a component's deviation
    (`pca-basis`). `codes` says which codes are decoded: "snapped" is private codes as they are drawn,
    "likely" a draw from what they say of the original, under a public distribution; no guarantee depends on
    it, as both are functions of the private code. The default is that of the mechanism for codecs of networks
    and `mixture`, and "snapped" for others. `attributes` is what a decoder with inputs for them is told
    beside the code: "gender=2", read by `model` and released by randomised response, or "gender=female",
    which costs nothing. Both are functions of one face, so pure guarantees add; others cannot, and what is
    read needs a pure one. `protect` and `placing` as in `FaceMethod`. Raises `InvalidParameter`,
    `ModelError`, `UsageError` if the default codec is not installed. Source: Croft 2022; Li & Clifton 2021;
    FaceIDP; docs, "Latent".

    >>> method = Latent(epsilon=300, codec="pca 100 sha256:" + 64 * "0")
    >>> str(method.guarantee(height=100, width=80, channels=3)), method.mechanism
    ('300-DP, latent-cell', 'box-truncated-laplace')
    """

    name: ClassVar[str] = "latent"
    kinds: ClassVar[tuple[str, ...]] = ("pure", "metric", "zcdp")
    summary: ClassVar[str] = "a face's code drawn anew, and decoded to another face"
    source: ClassVar[str] = "Croft 2022, Li & Clifton 2021, FaceIDP"
    typical: ClassVar[Mapping[str, Any]] = {"epsilon": 1}
    help: ClassVar[Mapping[str, str]] = {
        "guarantee": "pure, metric or zcdp: chooses a mechanism.",
        "mechanism": "How a code is drawn anew.",
        "metric": "The distance that epsilon is for one unit of, with a metric guarantee.",
        "clip": "Per cent of public codes that each side of the box leaves out.",
        "allocation": "equal, optimal, or weights such as 1-12=4: how a budget is divided over a code.",
        "ratio": "Noise of a component, beside its deviation, at most; default: 1.5.",
        "codes": "snapped or likely: private codes as drawn, or what they say; default: by mechanism.",
        "codec": "The model of dpveil train, or default: that of dpveil-faces.",
        "attributes": "What the decoder is told: gender=2 with a budget, gender=female, or none.",
        "model": "The model of dpveil train attributes that reads faces, or default: that of dpveil-faces.",
    }
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (("epsilon",), ("rho",))

    epsilon: OptionalPositive = OptionalPositive(optional=True)
    rho: OptionalPositive = OptionalPositive(optional=True)
    mechanism: OneOf = OneOf(*LATENT, optional=True)
    metric: OneOf = OneOf(*METRICS.values(), optional=True)
    clip: Between = Between(0, 40, hint="per cent of each side, such as 10", default=0)
    allocation: Allocation = Allocation(optional=True)
    ratio: OptionalPositive = OptionalPositive(optional=True)
    codes: OneOf = OneOf(SNAPPED, LIKELY, optional=True)
    codec: AssetField = AssetField(CODEC)
    attributes: AttributeBudgets = AttributeBudgets(default=NONE)
    model: AssetField = AssetField(READER)

    def __post_init__(self) -> None:
        self._check_protect()
        if self.mechanism is None:
            object.__setattr__(self, "mechanism", DEFAULT_MECHANISMS["pure" if self.rho is None else "zcdp"])
        needed = METRICS.get(str(self.mechanism))
        if needed and self.metric is None:
            hint = f"epsilon of {self.mechanism} is for one unit of a distance, so name it: {needed}"
            raise InvalidParameter("metric", None, "is missing", hint=hint)
        if self.metric != needed:
            hint = f"{self.mechanism} has {f'the metric {needed}' if needed else 'no metric'}"
            raise InvalidParameter("metric", self.metric, "does not belong here", hint=hint)
        self._check_codes()
        self._check_told()
        if self.codec.source is None:
            self._own  # noqa: B018  a cached property that raises for parameters that do not fit
        else:
            self._own.prepare(self._codec.statistics)

    def _check_codes(self) -> None:
        """Choose which codes are decoded if the user did not; raise if there are no likely ones."""
        able = LATENT[str(self.mechanism)].codes
        if self.codes is None:
            object.__setattr__(self, "codes", able[0] if self._kind.likely else SNAPPED)
        if self.codes == SNAPPED:
            return
        problem = None if self.codes in able else f"{self.mechanism}, whose noise has no law by coordinate"
        own = None if self.codec.source is None else self._codec
        if own is not None and own.prior is None and own.statistics.deviations is None:
            problem = f"{self.codec.name}, of whose codes no public distribution is known"
        if problem:
            raise InvalidParameter("codes", self.codes, f"is not for {problem}", hint=f"choose {SNAPPED}")

    def _check_told(self) -> None:
        """Raise unless what is read can be paid and read; without readings, no model is named."""
        if not self.told.costs:
            self.__dict__["model"] = Reference.built_in(READER)
            return
        if self._own.kind != "pure":
            name, problem = self.told.costs[0][0], f"cannot be added to a {self._own.kind} guarantee"
            hint = f"choose a pure mechanism, or a value: {name}=..."
            raise InvalidParameter(KEPT, name, problem, hint=hint)
        if self.model.name == NONE:
            kept = " and ".join(name for name, _ in self.told.costs)
            raise UsageError(f"no model that reads faces is installed, to keep {kept}", hint=FILES)

    @cached_property
    def told(self) -> DecoderInputs:
        """What the decoder is told beside the code."""
        return DecoderInputs(self.attributes, self._kind)

    @property
    def _kind(self) -> type[Codec]:
        """The codec's class, which is known without its file."""
        return CODEC.kinds[self.codec.name] if self.codec.source is None else type(self._codec)

    @property
    def set_by_user(self) -> tuple[str, ...]:
        """The chosen values, as they are written on the command line."""
        return tuple(f"{name}={value}" for name, value in self.told.chosen.items())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on budgets that are so large that they may not be meant as budgets."""
        return large_budget_notes(self.told.costs)

    @classmethod
    def stated(cls, parameters: Mapping[str, Json]) -> Self:
        """Return the method as a certificate states it, which may tell the decoder nothing."""
        return super().stated({KEPT: NONE, "model": NONE, **parameters})

    def parameters(self) -> dict[str, Json]:
        """Return every parameter as JSON, with files as kind and hash; nothing told is not stated."""
        every = {**super().parameters(), KEPT: self.told.written}
        return every if self.attributes else {n: v for n, v in every.items() if n not in (KEPT, "model")}

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the method; `guarantee` ("pure", "metric" or "zcdp") chooses a mechanism, or must fit it.

        Raises `InvalidParameter` and `UnknownName`.
        """
        given = dict(parameters)
        wanted = given.pop(WRITTEN, None)
        if wanted is None:
            return cls(**given)
        if wanted not in cls.kinds:
            hint = f"{suggestion(str(wanted), cls.kinds)}write pure, metric or zcdp"
            raise InvalidParameter(WRITTEN, wanted, "is unknown", hint=hint)
        budget = "rho" if wanted == "zcdp" else "epsilon"
        if given.get(budget) is None and given.keys() & {"epsilon", "rho"}:
            raise InvalidParameter(budget, None, "is missing", hint=f"{wanted} is paid in {budget}")
        if given.get("mechanism") is None:
            given["mechanism"] = of_kind(wanted, given.get("metric"))
        mechanism = LATENT.get(given["mechanism"])
        if mechanism is not None and mechanism.kind != wanted:
            hint = f"{given['mechanism']} is {mechanism.kind}"
            raise InvalidParameter(WRITTEN, wanted, "is not what the mechanism has", hint=hint)
        return cls(**given)

    def with_budget(self, **budget: Any) -> Self:
        """Return the method with another budget; tables of noise are only computed when it draws."""
        made = replace(self, codec=replace(self.codec, source=None), **budget)
        object.__setattr__(made, "codec", self.codec)
        return made

    @classmethod
    def accepted_parameters(cls) -> tuple[str, ...]:
        """Return the names of the parameters, and "guarantee"."""
        return (*super().accepted_parameters(), WRITTEN)

    @cached_property
    def _own(self) -> LatentMechanism:
        """The mechanism with its parameters; raises `InvalidParameter` for those that it does not have."""
        kind: type[LatentMechanism] = LATENT[str(self.mechanism)]
        taken = {entry.name for entry in fields(kind)}
        given = {name: getattr(self, name) for name in OWN}
        for name, value in given.items():
            if value is not None and name not in taken:
                hint = f"it takes {', '.join(sorted(taken))}"
                raise InvalidParameter(name, value, f"is not a parameter of {self.mechanism}", hint=hint)
        return kind(clip=self.clip, **{n: v for n, v in given.items() if v is not None})

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the mechanism's guarantee for one face's code, whatever the size of its region.

        The metric's name includes the codec's hash, because a distance between codes depends on the codec:
        guarantees with different codecs cannot be composed.
        """
        promised = self._own.guarantee(CodeSpaceFromCertificate(self.codec))
        if self.told.costs:
            promised = replace(promised, epsilon=(promised.epsilon or 0) + self.told.total)
        scope = replace(promised.scope, in_the_clear=(*self._kind.in_the_clear, *promised.scope.in_the_clear))
        if promised.metric is None:
            return replace(promised, scope=scope)
        metric = f"{promised.metric}, codec sha256:{self.codec.digest[:16]}"
        return replace(
            promised, scope=scope, metric=metric, distance=self._own.distance_data(self.codec.digest)
        )

    def pair_distances(self) -> Mapping[float, float] | None:
        """Return quantiles of the distance between different people of the codec's training set.

        The keys are shares of pairs, the distances are in the guarantee's metric. None if it has none, or if
        the codec's file is missing or has no distances.
        """
        if self.metric is None:
            return None
        try:
            return self._codec.statistics.pair_distances(self.clip).of(self.metric)
        except DPVeilError:
            return None

    @property
    def frame(self) -> Frame:
        """The codec's canvas; raises `InvalidParameter` if that is not square."""
        height, width, _ = self._codec.canvas
        if height != width:
            raise InvalidParameter("codec", f"{height}×{width}", "has no square canvas", hint="train another")
        return Frame(height)

    @property
    def turned(self) -> bool:
        """Whether decoded faces are turned to the yaw of their cells: those of a codec without poses are."""
        return self._kind.frontal

    @property
    def _codec(self) -> Codec:
        codec: Codec = self.codec.held
        return codec

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Load the codec; raises any error that would prevent drawing a code."""
        super().prepare(height=height, width=width, channels=channels)
        self._own.prepare(self._codec.statistics)
        if (model := self._reader) is not None:
            self.told.check(model)

    @property
    def _reader(self) -> AttributeModel | None:
        """The attribute model, or None if nothing is read."""
        return self.model.held if self.told.costs else None

    def _codes(self, crops: Crops) -> Codes:
        seen = crops if self._codec.canvas[2] == 3 else np.rint(crops @ GREY).astype(np.uint8)[..., None]
        return self._codec.encode(seen)

    def release_codes(self, codes: Codes, *, bits: BitSource) -> Crops:
        """Return a released crop for each code, n × m, that was not found by `Codec.encode`, such as by
        `optimise`: a draw each, which promises what `guarantee` says if each code follows from one face.

        Raises `InvalidParameter` for codes of another codec, and if attributes are read, as no face is given.
        """
        if self.told.costs:
            problem, hint = "is read of a face, and only codes are given", "choose a value instead"
            raise InvalidParameter(KEPT, self.told.written, problem, hint=hint)
        nobody = np.zeros((len(codes), 0, 0, 3), np.uint8)
        return self._shown(self._private(codes, check_bits(bits)), self.told.answers(nobody, None, bits))

    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        return self._shown(*self._released(crops, bits))

    def _released(self, crops: Crops, bits: BitSource) -> tuple[Codes, Answers]:
        return self._private(self._codes(crops), bits), self.told.answers(crops, self._reader, bits)

    def _private(self, codes: Codes, bits: BitSource) -> Codes:
        """Return private codes, or likely ones: the draw, and what follows from it alone."""
        codec = self._codec
        private = self._own.release(codes, codec.statistics, bits=bits)
        if self.codes == SNAPPED:
            return private
        if codec.prior is None:
            return likely(private, self._own, codec.statistics, bits=bits)
        return likely_in(codec.prior, private, self._own, codec.statistics, bits=bits)

    def _shown(self, codes: Codes, answers: Answers) -> Crops:
        released = self.told.decoded(self._codec, codes, answers)
        return np.ascontiguousarray(np.broadcast_to(released, (*released.shape[:3], 3)))
