from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpveil.core.envelope import canonical
from dpveil.core.rationals import exact, float_above, show, to_json
from dpveil.errors import InvalidParameter


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(7), Fraction(7)),
        ("1e-6", Fraction(1, 10**6)),
        (" 1/3 ", Fraction(1, 3)),
        (5e-324, Fraction(5, 10**324)),
        (10**400, Fraction(10**400)),
    ],
)
def test_a_number_is_its_shortest_decimal(written, meant):
    assert exact(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        True,
        None,
        "",
        "x",
        "1/0",
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        Decimal("NaN"),
        Decimal("Infinity"),
        [1],
        1j,
        "1e999999999",
        Decimal("1e999999999"),
        "1e-999999999",
        "1" * 5000,
        "0x10",
    ],
)
def test_what_is_no_finite_number_is_refused_at_once(written):
    with pytest.raises(InvalidParameter, match=r"epsilon.* is not a finite number"):
        exact(written, "epsilon")


fractions = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30)


@given(fractions)
def test_float_above_is_the_next_float_that_is_not_below(value):
    above = float_above(value)
    assert Fraction(above) >= value
    assert Fraction(math.nextafter(above, 0)) < value


def test_float_above_of_the_unrepresentable_is_infinite():
    assert float_above(Fraction(10**400)) == math.inf


@given(fractions)
def test_json_keeps_numbers_exact(value):
    assert exact(json.loads(json.dumps(to_json(value)))) == value


@given(fractions)
def test_shown_numbers_are_never_below(value):
    shown = exact(show(value))
    assert value <= shown <= value * Fraction(1001, 1000)


def test_numbers_beyond_floats_have_a_json_form():
    assert to_json(Fraction(10**400 + 1, 3)) == f"{10**400 + 1}/3"


def test_what_is_smaller_than_any_float_is_never_shown_as_nothing():
    for digits in (324, 400, 2100):
        assert show(Fraction(1, 10**digits)) == f"1e-{digits}"
    assert Decimal(show(Fraction(1, 3 * 10**400))) > Decimal("3.333e-401")  # rounded up


# Freed memory is kept: the next array costs no page that the system has to clear.


PROGRAM = """
import resource, sys
import numpy as np
from dpveil.processes import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
size = 3 << 24
faults(size)
print(faults(size))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_is_kept(kept: bool) -> None:
    call = [sys.executable, "-c", PROGRAM, "kept" if kept else "given back"]
    usual = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    faults = int(subprocess.run(call, env=usual, capture_output=True, check=True).stdout)
    assert faults < 20 if kept else faults >= 20


# Which known name is suggested for a misspelt one.


NAMES = ("telea", "default", "box", "mean", "head", "dlib")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_has_no_canonical_form(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical({"a": [value]})
