"""The interface of a scalar mechanism: a query, a lattice, a guarantee, draws and a mechanism matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import SCALE, OptionalPositive, Positive, Value
from dpveil.core.rationals import Json, exact, show, to_json
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.scalar.lattice import Lattice, coarsest
from dpveil.mechanisms.scalar.matrix_cost import (
    MatrixCost,
    Rows,
    certify_rows,
    cost_of_matrix,
    log_ratio,
    steepest,
)
from dpveil.mechanisms.scalar.ranges import Range, RangeParameter
from dpveil.noise.bits import BitSource, check_bits
from dpveil.noise.integer_matrix import IntegerMatrix

ANY_DATABASE: Final = "any-database"
DATABASE_RECORD: Final = "database-record"
MOST_MATRIX_POINTS: Final = 1 << 12  # points of the largest lattice whose matrix is computed
REFUSED: Final = "that the answer is no float too large for the step, which is refused"


class RelationName(Value[str | None, str | None]):
    """A neighbour relation: database-record or any-database.

    database-record promises ε for two databases that differ in one record, any-database ε for every ΔF
    between two answers. None chooses any-database if the mechanism holds it.
    """

    def check(self, value: str | None) -> str | None:
        """Return `value` if it is a relation's name or None. Raises `InvalidParameter`."""
        if value not in (None, ANY_DATABASE, DATABASE_RECORD):
            raise InvalidParameter(
                "relation", value, "is unknown", hint=f"choose {DATABASE_RECORD} or {ANY_DATABASE}"
            )
        return value


@dataclass(frozen=True, kw_only=True)
class ScalarMechanism(ABC):
    """A mechanism that releases one number about a database within its publicly known range.

    `range` contains all answers and responses (a `Range`, a pair, or text such as 0:5), `sensitivity` is ΔF,
    the most by which one record changes the answer, and `epsilon` is the budget. `relation` is
    database-record or any-database. `step` is the spacing of the lattice to which answers are rounded first;
    the default depends on the mechanism. Raises `InvalidParameter`. Source: Croft thesis ch. 5.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    relations: ClassVar[tuple[str, ...]] = (ANY_DATABASE, DATABASE_RECORD)
    """Relations that it can promise, the default first."""

    range: RangeParameter = RangeParameter()
    sensitivity: Positive = Positive(hint="there is no default: the most that one record moves the answer")
    epsilon: Positive = Positive(hint=SCALE)
    relation: RelationName = RelationName(optional=True)
    step: OptionalPositive = OptionalPositive(optional=True)

    def __post_init__(self) -> None:
        if self.promise not in self.relations:
            raise InvalidParameter(
                "relation",
                self.promise,
                f"is not one that {self.name} keeps",
                hint=f"choose {' or '.join(self.relations)}, or another mechanism",
            )
        if self.finite_only and not self.range.finite:
            raise InvalidParameter(
                "range",
                str(self.range),
                "has no end, and both are needed",
                hint="give both ends, or choose laplace or truncated-laplace",
            )
        size = self.lattice.size  # a step that does not fit is refused here
        if self.finite_only and (size or 0) > self.most:
            raise InvalidParameter(
                "step",
                show(self.lattice.step),
                f"leaves {size} points, and at most {self.most} are possible",
                hint="choose a larger step, or truncated-laplace",
            )

    finite_only: ClassVar[bool] = True
    """Whether it needs a range with two ends."""
    most: ClassVar[int] = MOST_MATRIX_POINTS

    @property
    def promise(self) -> str:
        """The relation that holds: the chosen one, or the mechanism's default."""
        return self.relation or self.relations[0]

    @property
    def budget(self) -> Fraction:
        """ε; mypy needs this in subclasses, where it does not see the descriptor of the field."""
        return self.epsilon

    @property
    def allowed_range(self) -> Range:
        """The range of answers and responses; see `budget`."""
        return self.range

    @cached_property
    def lattice(self) -> Lattice:
        """The points on which answers and responses lie."""
        return Lattice(self.range, self.step or self._default_step(), self.sensitivity)

    def _default_step(self) -> Fraction:
        return self.coarsest

    @property
    def coarsest(self) -> Fraction:
        """The largest step that divides ΔF and the distances between all ends of the range."""
        return coarsest(self.range, self.sensitivity)

    @abstractmethod
    def _rows(self, epsilon: Fraction) -> Rows | None:
        """Return integer weights for every answer (rows) and response of a finite lattice, else None."""

    def _cost(self, matrix: IntegerMatrix) -> Fraction:
        """Return what must not exceed ε: the largest log-ratio for one record, or per sensitivity."""
        lattice = self.lattice
        if self.promise == ANY_DATABASE:
            return lattice.record * steepest(matrix, lattice.points)
        return log_ratio(matrix, lattice.points, lattice.furthest)

    @cached_property
    def integers(self) -> IntegerMatrix | None:
        """The finite law that is certified and drawn, one row per answer; None on an infinite lattice."""
        if not self._is_finite:
            return None
        least = self.epsilon / (self.lattice.reach if self.promise == ANY_DATABASE else 1)
        return certify_rows(self._rows_again, self.epsilon, least, self._cost)

    @property
    def _is_finite(self) -> bool:
        return self.lattice.size is not None and self.lattice.size <= self.most

    def _rows_again(self, epsilon: Fraction) -> Rows:
        rows = self._rows(epsilon)
        if rows is None:
            raise InvalidParameter("range", str(self.range), "has no end", hint="give both ends")
        return rows

    @cached_property
    def certificate(self) -> MatrixCost | None:
        """The exact cost of the integers; None on an infinite lattice, where a proof replaces it."""
        if self.integers is None:
            return None
        lattice = self.lattice
        return cost_of_matrix(self.integers, lattice.points, lattice.furthest, lattice.record)

    def _refuse_gaps(self) -> None:
        raise InvalidParameter(
            "range",
            str(self.range),
            f"has gaps, which {self.name} does not know",
            hint="choose laplace or truncated-laplace",
        )

    def prepare(self) -> None:
        """Raise any error that would prevent a draw, before an answer is read."""
        _ = self.integers

    def guarantee(self) -> Guarantee:
        """Return the guarantee of one release: ε for one record, or ε·d for any two databases."""
        width, refused = self.range.width, (REFUSED,) if self.lattice.refuses else ()
        clear = ("the range, ΔF and the step, which are public", *refused)
        covers = f"one number in {self.range}, of sensitivity {show(self.sensitivity, 12)}"
        scope = Scope(covers, clear if self._is_finite else (*clear, *self._shows()))
        if self.promise == DATABASE_RECORD:
            return Guarantee(kind="pure", epsilon=self.spent, relation=Relation(DATABASE_RECORD), scope=scope)
        rounded = f"|f - f′|/{show(self.sensitivity, 12)}, answers rounded to {show(self.lattice.step, 12)}"
        return Guarantee(
            kind="metric",
            epsilon=self.spent,
            relation=Relation(ANY_DATABASE),
            metric=rounded,
            diameter=None if width is None else width / self.sensitivity,
            scope=scope,
        )

    @property
    def spent(self) -> Fraction:
        """The ε that `guarantee` states."""
        return self.epsilon

    def _shows(self) -> tuple[str, ...]:
        return ()

    def release(self, answer: Any, bits: BitSource) -> Any:
        """Return one response per answer: a float for a number, an array of floats for an array.

        Answers are numbers within the range. Ints, fractions and texts are exact; floats and Decimals may be
        off by `lattice.reading.off`, which is at least 2^-40 of their size (see `reading`). Every answer
        costs what `guarantee` states. Raises `InvalidParameter` for others, before anything is drawn.
        """
        check_bits(bits)
        points = self.lattice.index(answer)
        drawn = self.lattice.value(self.draw(points, bits))
        return float(drawn[0]) if np.ndim(answer) == 0 else drawn.reshape(np.shape(answer))

    def draw(self, points: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        """Return one response per answer, both as points of the lattice."""
        if self.integers is None:
            return self._draw(points, bits)
        own = self.lattice.points
        return np.asarray(own[self.integers.sample(np.searchsorted(own, points), bits)])

    def _draw(self, points: Int64[np.ndarray, " n"], bits: BitSource) -> Int64[np.ndarray, " n"]:
        raise NotImplementedError

    def matrix(self, responses: Any = None, answers: Any = None) -> Float64[np.ndarray, "responses answers"]:
        """Return the mechanism matrix: M[i, j] = P(response falls in category i | true answer j).

        A category contains the numbers nearest to it; a midpoint belongs to the upper one. By default there
        is a category at every point of the given step, or else of the coarsest lattice, of a finite range
        with at most 4096 points. Columns sum to 1. Raises `InvalidParameter`. Source: Croft thesis def. 10.

        >>> from dpveil.mechanisms.scalar import Geometric
        >>> Geometric(range=(0, 2), sensitivity=1, epsilon=1).matrix().round(3).tolist()
        [[0.731, 0.269, 0.099], [0.17, 0.462, 0.17], [0.099, 0.269, 0.731]]
        """
        shown = self.numbers("responses", responses)
        given = self.numbers("answers", answers)
        cuts = [self._cut((a + b) / 2) for a, b in pairwise(shown)]
        points = self.lattice.index(np.array(given, dtype=object))
        if self.integers is None:
            edges = np.array([-np.inf, *cuts, np.inf])
            return np.stack([self._masses(int(point), edges) for point in points], axis=1)
        own = self.lattice.points
        starts = np.searchsorted(own, [own[0], *cuts])
        rows = np.searchsorted(own, points)
        weights = [self.integers.weights[row] for row in rows]
        ends = [*starts[1:], len(own)]
        found = [[sum(w[a:b]) / (1 << 64) for w in weights] for a, b in zip(starts, ends, strict=True)]
        return np.array(found, np.float64)

    def _cut(self, middle: Fraction) -> int:
        """Return the first point of the lattice that is not below a number."""
        return -((self.lattice.origin - middle) / self.lattice.step).__floor__()

    def numbers(self, name: str, values: Any) -> list[Fraction]:
        """Return the numbers to tabulate: those given, or points of the given step or coarsest lattice.

        Raises `InvalidParameter` for responses that do not increase, and where no default is possible.
        """
        if values is not None:
            given = [exact(value, name) for value in np.ravel(np.asarray(values, dtype=object))]
            if not given or (name == "responses" and any(a >= b for a, b in pairwise(given))):
                raise InvalidParameter(name, None, "are not in order", hint="each larger than the last")
            return given
        if not self.range.finite:
            raise InvalidParameter(
                name, None, "are missing, and the range has no end", hint="give the numbers to tabulate"
            )
        coarse = Lattice(self.range, self.coarsest, self.sensitivity)
        chosen = self.lattice if self.step else coarse
        if (chosen.size or 0) > MOST_MATRIX_POINTS:
            raise InvalidParameter(
                name, None, f"are missing, and there are {chosen.size}", hint="give the numbers to tabulate"
            )
        return [chosen.origin + int(point) * chosen.step for point in chosen.points]

    def _masses(self, point: int, edges: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " categories"]:
        """Return the probability that the response to a point lies in each [edge, next edge)."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Json]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: to_json(v) if isinstance(v, Fraction) else str(v) if isinstance(v, Range) else v
            for name, v in values.items()
        }
