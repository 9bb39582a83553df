"""Transcripts: what people read on screen, and the numbers of answers, of the calls that the two files name.

A call more is a line `$ dpveil ...` in words.txt, or a name with null in numbers.json; then record.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contract.recording import RUNS, runs

WORDS: Final = Path(__file__).with_name("words.txt")
NUMBERS: Final = Path(__file__).with_name("numbers.json")
PROMPT: Final = "$ dpveil "
CHANGING: Final = re.compile(
    r"[\w/+=-]{40,}|(?<!\.)\b[0-9a-f]{8,}\b|\b[\d.]+ (seconds|s)\b|\d{4}-\d\d-\d\d[T ][\d:.+]+"
)
"""What differs from run to run: keys, hashes, times and dates."""
EXACT: Final = 1e-6  # relative: another processor may differ in the last bits


def words() -> str:
    """Return what every call prints, and its exit code: those of the contract first, then the others."""
    known = [line.removeprefix(PROMPT) for line in WORDS.read_text().splitlines() if line.startswith(PROMPT)]
    calls = dict(RUNS) | {call: call for call in known if call not in RUNS.values()}
    return "".join(
        f"{PROMPT}{calls[name]}\n{CHANGING.sub('*', printed + errors)}[{code}]\n\n"
        for name, code, printed, errors in runs(calls)
    )


def numbers() -> dict[str, Any]:
    """Return the numbers of every answer, or its exit code where there is none."""
    calls = {call: f"{call} --json" for call in json.loads(NUMBERS.read_text())}
    return {
        name: code or numbers_of(json.loads(printed))
        for name, code, printed, _ in runs(calls)
        if name in calls
    }


def numbers_of(value: Any) -> Any:
    """Return what of an answer is recorded: no sentences, and numbers of nine digits."""
    if isinstance(value, Mapping):
        kept = {key: numbers_of(item) for key, item in sorted(value.items())}
        return {key: item for key, item in kept.items() if item not in ("", {}, [])}
    if isinstance(value, list):
        return [numbers_of(item) for item in value]
    if isinstance(value, str):
        return "" if " " in value else value
    return float(f"{value:.9g}") if isinstance(value, float) and math.isfinite(value) else value


def same(one: Any, other: Any) -> bool:
    """Return whether two answers are equal, but for the last bits of floats."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=EXACT, abs_tol=1e-12)
    return bool(one == other)


def record() -> None:
    """Call all again and write what they say."""
    WORDS.write_text(words())
    lines = (f"{json.dumps(call)}: {json.dumps(answer)}" for call, answer in numbers().items())
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
