"""Users' data: answers, their sensitivities over neighbours, what is refused, and what is never told."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpveil import numbers
from dpveil.accounting import compose
from dpveil.core.guarantee import Distance
from dpveil.errors import DataError, DPVeilError, InvalidParameter, UnknownName, UnsupportedRelation
from dpveil.mechanisms.scalar import Geometric, Laplace, Range, ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.noise_mechanisms import NoisyMechanism
from dpveil.noise.bits import SecureBits, SeededBits
from dpveil.numbers.expected_error import answers_of, utility
from dpveil.numbers.statistics import deviation_moves

BITS = SeededBits(11)
MEAN = {"range": (0, 120), "epsilon": 1, "mechanism": "geometric"}


@pytest.fixture
def truth(monkeypatch):
    """The answers that are handed to the mechanism, with the mechanism."""
    seen = []

    def release(self, answer, bits):
        seen.append((self, answer))
        return np.zeros(np.shape(answer)) if np.ndim(answer) else 0.0

    monkeypatch.setattr(ScalarMechanism, "release", release)
    for kind in (ScalarMechanism, NoisyMechanism):
        monkeypatch.setattr(kind, "prepare", lambda self: None)
    return seen


def asked(truth, call, values, **more):
    truth.clear()
    call(values, **more).release(BITS)
    ((mechanism, answer),) = truth
    return mechanism, answer


# What is asked


def test_answers_are_those_of_the_data(truth):
    values = [1, 2, 2, 5, "4", 12.5]
    settings = {"range": (0, 10), "epsilon": 1, "mechanism": "laplace"}
    clipped = [1, 2, 2, 5, 4, 10]
    assert asked(truth, numbers.mean, values, **settings)[1] == Fraction(sum(clipped), 6)
    mechanism, deviation = asked(truth, numbers.standard_deviation, values, **settings)
    assert abs(float(deviation) - np.std(clipped)) <= float(mechanism.lattice.step) / 2 * (1 + 1e-9)
    assert deviation % mechanism.lattice.step == 0
    assert asked(truth, numbers.count, values, above=2, below=6, epsilon=1)[1] == 2
    assert asked(truth, numbers.count, values, equals="2", epsilon=1)[1] == 2
    assert asked(truth, numbers.count, ["yes", " yes", "no", None], equals="yes", epsilon=1)[1] == 2
    made = asked(truth, numbers.histogram, values, range=(0, 10), bins=[0, 2, 5, 10], epsilon=1)
    assert made[1] == [1, 3, 2]  # an edge belongs to the bin above it, the last one to the last bin


def test_the_nearest_point_of_a_deviation_is_exact(truth):
    """Roots are rounded without floating point: a deviation that is a half of a step goes up."""
    settings = {"range": (0, 4), "epsilon": 1, "mechanism": "laplace", "step": "0.5"}
    _, deviation = asked(truth, numbers.standard_deviation, ["0", "2.5"], **settings)
    assert deviation == Fraction(3, 2)  # 1.25 lies between 1 and 1.5
    _, deviation = asked(
        truth, numbers.standard_deviation, [0, Fraction(25 * 10**30 - 1, 10**31)], **settings
    )
    assert deviation == 1


@pytest.mark.parametrize("n", [2, 3, 10, 50, 999, 10**6, 10**9])
def test_sensitivity_of_a_deviation_bounds_the_root_and_fits_the_range(n):
    width = Fraction(12)
    moved = deviation_moves(width, n)
    tight = width**2 * (n - 1) / Fraction(n) ** 2
    assert tight <= moved**2 <= Fraction(10201, 10000) * tight
    assert TruncatedLaplace(range=(0, width / 2), sensitivity=moved, epsilon=1).coarsest >= moved / 1024


# What is promised


def test_guarantees_name_the_neighbours_and_what_is_public():
    answer = numbers.mean([20, 40], **MEAN)
    assert str(answer.guarantee) == "1-DP, database-record"
    assert "one of them with another record" in answer.guarantee.scope.covers
    assert "the number of rows, 2" in answer.guarantee.scope.in_the_clear[0]
    assert answer.mechanism.sensitivity == 60
    made = numbers.histogram([20, 40], range=(0, 120), bins=3, epsilon=1)
    assert made.guarantee.epsilon == 1
    assert made.mechanism.epsilon == Fraction(1, 2)
    metric = numbers.histogram([20, 40], range=(0, 120), bins=3, epsilon=1, relation="any-database").guarantee
    assert (metric.kind, metric.epsilon, metric.metric, metric.diameter) == (
        "metric", 1, "records replaced", 2,
    )  # fmt: skip
    free = numbers.histogram([20, 40], range=(0, 120), bins=3, epsilon=1, mechanism="uniform")
    assert free.guarantee.epsilon == 0


def test_the_document_tells_nothing_of_the_data_but_the_response():
    secret = [17.125, 63.0625, None]
    document = json.dumps(numbers.mean(secret, missing=1, **MEAN).release(BITS).to_json())
    assert "17.125" not in document
    assert "63.0625" not in document
    assert json.loads(document)["bits"] == "seeded"
    assert "NOT FOR PUBLICATION" in json.loads(document)["warnings"][0]
    plan = numbers.mean(secret, missing=1, range=(0, 120), epsilon=1, mechanism="uniform")
    assert plan.release(SecureBits()).warnings == ()


def test_a_plan_is_released_with_secure_bits_and_prints_one_line_without_its_answer():
    plan = numbers.histogram([1, 2, 119], range=(0, 120), bins=3, epsilon=1)
    assert repr(plan) == f"Plan(histogram of 3 rows, {plan.mechanism.name}, 1-DP, database-record)"
    answer = plan.release()
    assert (answer.bits, answer.warnings) == ("secure", ())
    assert repr(answer) == f"Answer(histogram, {answer.shown}, 1-DP, database-record)"
    assert plan.release(bits=SeededBits(1)).bits == "seeded"
    with pytest.raises(InvalidParameter, match="bits = 'int' is not a source of bits"):
        plan.release(3)


def test_weak_budgets_give_the_answer_away():
    values = list(range(100))
    close, bits = {"range": (0, 99), "epsilon": 40}, SeededBits(1)
    assert numbers.mean(values, **close).release(bits).response == pytest.approx(49.5, abs=1)
    deviation = numbers.standard_deviation(values, **close).release(bits).response
    assert deviation == pytest.approx(np.std(values), abs=2)


def test_metric_guarantees_without_an_end_compose():
    known = Distance.of("one-query")
    one = replace(Laplace(range="0:", sensitivity=1, epsilon="0.5").guarantee(), distance=known)
    both = compose([one, one])
    assert (both.kind, both.epsilon, both.diameter) == ("metric", 1, None)
    ended = Laplace(range="0:4", sensitivity=1, epsilon="0.5", step="1/1024").guarantee()
    assert compose([replace(ended, distance=known)] * 2).diameter == 4
    with pytest.raises(UnsupportedRelation):  # of which query, the mechanism does not know
        compose([ended, ended])


# What is refused


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: numbers.mean([1], **{**MEAN, "range": "0:"}), "range = '0:' does not bound the values"),
        (lambda: numbers.mean([1], **{**MEAN, "range": Range(0, 9, [(1, 2)])}), "has gaps"),
        (lambda: numbers.mean([], **MEAN), "values are none"),
        (lambda: numbers.mean([[1, 2]], **MEAN), "values are not a column"),
        (lambda: numbers.mean([1], **{**MEAN, "epsilon": 0}), "epsilon = 0 is not above 0"),
        (lambda: numbers.mean([1], **MEAN).release(7), "bits = 'int' is not a source of bits"),
        (lambda: numbers.mean([1], **MEAN, missing=121), "missing = '121' is not in the range 0:120"),
        (lambda: numbers.mean([1], **MEAN, relation="all"), "relation = 'all' is unknown"),
        (lambda: numbers.standard_deviation([1], **MEAN), "values are one row, whose deviation is always 0"),
        (lambda: numbers.count([1], epsilon=1), "condition is missing"),
        (lambda: numbers.histogram([1], **MEAN, bins=0), "bins = 0 is out of range"),
        (lambda: numbers.histogram([1], **MEAN, bins=[0, 50]), "do not cover the range 0:120"),
        (lambda: numbers.histogram([1], **MEAN, bins=[0, 50, 40, 120]), "bins are not edges in order"),
    ],
)  # fmt: skip
def test_wrong_calls_say_what_is_wrong(call, words):
    with pytest.raises(InvalidParameter) as error:
        call()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_mechanisms_are_named():
    with pytest.raises(UnknownName, match="did you mean 'geometric'"):
        numbers.mean([1], **{**MEAN, "mechanism": "geometrical"})


class NotAvailable:
    """Like pandas' NA: no comparison with it is true or false."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None


GAPS = [None, float("nan"), "", " NA ", "?", np.float64("nan"), np.ma.masked]
GAPS += [NotAvailable(), Decimal("nan"), Decimal("snan"), np.datetime64("NaT")]


@pytest.mark.parametrize("gap", GAPS)
def test_missing_values_are_refused_and_only_their_holder_learns_how_many(gap):
    with pytest.raises(DataError) as error:
        numbers.mean([3, gap, 5, gap], **MEAN)
    assert error.value.private == "missing in rows 2, 4 of 4"
    assert "2" not in error.value.message + error.value.hint
    assert error.value.exit_code == 4
    assert numbers.mean([3, gap, 5, gap], missing=0, **MEAN).rows == 4


@pytest.mark.parametrize("value", ["1,5", "inf", float("-inf"), "old", True])
def test_what_is_no_number_is_refused_without_telling_it(value):
    with pytest.raises(DataError) as error:
        numbers.mean([3, value], **MEAN)
    assert "row 2" in error.value.private
    assert str(value) not in error.value.message


def test_what_is_wrong_with_a_query_is_told_before_any_value_is_looked_at():
    """Else whether a public refusal or a private one comes first would tell of the data."""
    for values in ([1, 2, 3], [1, "old", None]):
        with pytest.raises(InvalidParameter, match="step"):
            numbers.mean(values, **MEAN, step=7)


# Columns of files


def table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_columns_are_read_as_text(tmp_path):
    path = table(tmp_path, '﻿name, age\r\n"Doe, J",4\r\n\r\nmore,\r\n')
    assert numbers.column(path, "age") == ["4", ""]
    assert numbers.column(path, "name") == ["Doe, J", "more"]
    assert numbers.column(table(tmp_path, "a;b\n1;2\n"), "b", delimiter=";") == ["2"]
    assert numbers.column(table(tmp_path, "a\n1\n\n3\n"), "a") == ["1", "", "3"]  # a blank cell is a row


@pytest.mark.parametrize(
    ("text", "column", "words", "private"),
    [
        ("a,b\n1,2\n", "c", "column = 'c' is not in the table: it has a, b", ""),
        ("age,b\n1,2\n", "agee", "did you mean age? it has age, b", ""),
        ("a,a\n1,2\n", "a", "is the name of several columns", ""),
        ("", "a", "has no header line", ""),
        ("a,b\n", "a", "has no rows under its header", ""),
        ("a,b\n1,2\n3\n", "a", "as many cells as the header, 2", "row 2 under the header has one cell"),
        ('a,b\n1,"2\n', "a", "is not a CSV table", "unexpected end of data"),
    ],
)
def test_tables_that_cannot_be_read_say_why(tmp_path, text, column, words, private):
    with pytest.raises(DPVeilError) as error:
        numbers.column(table(tmp_path, text), column)
    assert words in str(error.value)
    assert getattr(error.value, "private", "").endswith(private)
    if private:
        assert private not in error.value.message + error.value.hint


def test_files_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        numbers.column(tmp_path / "none.csv", "a")
    with pytest.raises(DataError, match="not text in UTF-8"):
        numbers.column(table(tmp_path, "a\nä\n", "latin-1"), "a")
    with pytest.raises(InvalidParameter, match="delimiter = ',,' is not one character"):
        numbers.column(table(tmp_path, "a\n1\n"), "a", delimiter=",,")


# Which mechanism


def test_expected_errors_are_those_of_the_law():
    geometric = Geometric(range=(0, 4), sensitivity=1, epsilon=1)
    law = geometric.matrix()
    answers = [Fraction(k) for k in range(5)]
    away = np.abs(np.arange(5)[:, None] - np.arange(5))
    found = utility(geometric, answers)
    assert found.mean == pytest.approx((law * away).sum() / 5, rel=1e-12)
    assert found.worst == pytest.approx((law * away).sum(axis=0).max(), rel=1e-12)
    guesses = [min((law[y] * np.abs(g - np.arange(5))).sum() for g in range(5)) for y in range(5)]
    assert found.remapped == pytest.approx(sum(guesses) / 5, rel=1e-12)
    assert found.remapped <= found.mean


def test_the_best_that_holds_what_is_asked_comes_first():
    query = {"range": (0, 10), "sensitivity": 1, "epsilon": 2}
    record = numbers.candidates(**query)
    errors = [one.utility.mean for one in record if one.utility]
    assert errors == sorted(errors)
    assert record[0].name == numbers.choose(**query).name
    anything = {one.name: one for one in numbers.candidates(**query, relation="any-database")}
    assert "any-database" in anything["staircase"].reason
    assert all(
        one.mechanism.guarantee().kind == "metric" for one in anything.values() if one.mechanism is not None
    )
    half = {one.name: one for one in numbers.candidates(range="0:", sensitivity=1, epsilon=2)}
    assert "has no end" in half["uniform"].reason
    assert half["laplace"].utility is not None


def test_answers_that_are_looked_at_are_in_the_range():
    for allowed in (Range(0, 10), Range(0, 10**6), Range(0), Range(None, 4), Range(), Range(0, 9, [(2, 5)])):
        for whole in (True, False):
            found = answers_of(allowed, Fraction(1), whole=whole)
            assert found
            assert all(answer in allowed for answer in found)
    with pytest.raises(InvalidParameter, match="answers = 11 are not all in the range 0:10"):
        numbers.candidates(range=(0, 10), sensitivity=1, epsilon=1, answers=[11])


def test_settings_do_not_depend_on_the_data():
    one, two = (numbers.mean([end] * 30, **{**MEAN, "mechanism": None}) for end in (0, 120))
    assert one.mechanism.name == two.mechanism.name
    assert one.mechanism.parameters() == two.mechanism.parameters()
    assert one.guarantee == two.guarantee
