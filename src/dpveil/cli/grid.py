"""The grid of a comparison: methods and neighbourhoods by budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from dpveil.catalogue import DEFAULT, build, row_of
from dpveil.cli.command import Refusal
from dpveil.cli.options import number
from dpveil.core.parameters import ALL
from dpveil.core.registry import METHODS
from dpveil.errors import DPVeilError, InvalidParameter, ModelError, UsageError
from dpveil.mechanisms.method import Method

DELTA: Final = "1e-6"
"""Default δ for methods that require one."""
USUAL: Final = "the default"
"""The settings of what `dpveil obfuscate` does without options."""


Refused: TypeAlias = dict[str, dict[str, DPVeilError]]
"""What methods raise by their names, for every budget."""


@dataclass(frozen=True)
class Line:
    """One method at one neighbourhood: an object for every budget, None for a duplicate or a refused one."""

    name: str
    neighbourhood: int | None
    methods: tuple[Method | None, ...]


@dataclass(frozen=True)
class Choice:
    """What a comparison varies, and its common parameters; numbers are as the user wrote them."""

    names: tuple[str, ...]
    budgets: tuple[str, ...]
    neighbourhoods: tuple[int | None, ...]
    delta: str | None
    block: int | str
    gallery: str | None = None
    metric: str | None = None


def neighbourhoods(words: Sequence[str]) -> tuple[int | None, ...]:
    """Return the neighbourhoods in pixels, without duplicates; "all" is None. Raises `InvalidParameter`."""
    found: list[int | None] = []
    for word in words:
        value = None if word.strip() == ALL else number(word)
        if isinstance(value, str):
            raise InvalidParameter(
                "--neighbourhood", word, "is not a number of pixels", hint=f"a whole number, or {ALL}"
            )
        found.append(value)
    return tuple(dict.fromkeys(found))


def lines(
    choice: Choice, *, every: bool, options: Mapping[str, str] | None = None
) -> tuple[list[Line], list[str]]:
    """Return the lines of the comparison and notes on methods left out, which write arguments as `options`.

    A parameter is passed to the methods that have it; a default δ only to those that require it. With
    `every`, methods that require other parameters, or files that are missing, are left out with a note, and
    so is a budget that others take; otherwise they raise `InvalidParameter` or `ModelError`, and so does a
    gallery that no method takes. The first of all methods is the default, as `plan` has it. Raises
    `UnknownName` for an unknown method.
    """
    made: list[Line] = []
    notes: list[str] = []
    refused: DPVeilError | None = None
    budgets: Refused = {budget: {} for budget in choice.budgets}
    for name in choice.names:
        seen: set[Method] = set()
        known = {field.name for field in fields(METHODS[name])} if name in METHODS else set()
        alike = name in METHODS and "neighbourhood" not in known
        try:
            varied = choice.neighbourhoods[: 1 if alike else None]
            rows = [_line(name, m, choice, seen, budgets if every else None) for m in varied]
        except (UsageError, ModelError) as error:
            if not every or getattr(error, "name", "") in ("epsilon", "delta", "block", "neighbourhood"):
                raise
            notes += left_out({name: error}, options or {})
            refused = error if "gallery" in known else refused
            continue
        made += [row for row in rows if any(row.methods)]
    notes += _budgets_left_out(budgets, made, options or {})
    taken = any(hasattr(method, "gallery") for row in made for method in row.methods)
    if choice.gallery and refused and not taken:
        raise refused
    if choice.metric and not any(getattr(one, "metric", None) for row in made for one in row.methods):
        raise InvalidParameter("metric", choice.metric, "is taken by no method here", hint="--method latent")
    if every:
        made.insert(0, Line(DEFAULT, None, (build(None, {}), *[None] * (len(choice.budgets) - 1))))
    return made, notes


def left_out(refused: Mapping[str, DPVeilError], options: Mapping[str, str]) -> list[str]:
    """Return a note on the methods that are left out for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, error in refused.items():
        reasons.setdefault(str(Refusal(error, options)), []).append(name)
    verbs = {why: "is" if len(names) == 1 else "are" for why, names in reasons.items()}
    return [f"{', '.join(names)} {verbs[why]} left out: {why}" for why, names in reasons.items()]


def _budgets_left_out(refused: Refused, made: Sequence[Line], options: Mapping[str, str]) -> list[str]:
    """Return notes on budgets that some methods refuse; raises what they raised if every method does."""
    for index, errors in enumerate(refused.values()):
        taken = any(getattr(line.methods[index], "epsilon", None) is not None for line in made)
        if errors and not taken:
            raise next(iter(errors.values()))
    return [note for errors in refused.values() for note in left_out(errors, options)]


def _line(name: str, m: int | None, choice: Choice, seen: set[Method], refused: Refused | None) -> Line:
    """Return one line, with None for methods in `seen`: some do not have all parameters that vary.

    Budgets that the method refuses go to `refused`, or raise `InvalidParameter` if that is None.
    """
    made: list[Method | None] = []
    for epsilon in choice.budgets:
        given = {"epsilon": epsilon, "block": choice.block, "neighbourhood": m}
        given |= {"delta": choice.delta, "gallery": choice.gallery, "metric": choice.metric}
        try:
            method = one(name, given)
        except InvalidParameter as error:
            if refused is None or error.name != "epsilon":
                raise
            refused[epsilon][name] = error
            made.append(None)
            continue
        made.append(None if method in seen else method)
        seen.add(method)
    there = next(filter(None, made), None)
    return Line(name, getattr(there, "neighbourhood", None), tuple(made))


def settings(method: Method, *, but: Sequence[str] = ()) -> str:
    """Return the parameters that are not their defaults, without those in `but` and hashes of files.

    The default method is named so.

    >>> settings(build("dp-samp", {"epsilon": 5, "clusters": 8}))
    'epsilon 5, clusters 8'
    """
    if method == build(None, {}):
        return USUAL
    usual = row_of(type(method))["parameters"]
    own = {name: value for name, value in method.parameters().items() if value not in (None, usual[name])}
    words = {name.replace("_", " "): value for name, value in own.items() if name not in but}
    told = [name if value is True else f"{name} {value}" for name, value in words.items()]
    return ", ".join(text for text in told if "sha256:" not in text)


def one(name: str, given: dict[str, Any]) -> Method:
    """Return the method with those of the `given` parameters that it has, and a default δ if it requires one.

    Other required parameters have the method's `typical` values.
    """
    known = {field.name for field in fields(METHODS[name])} if name in METHODS else set(given)
    own = {key: value for key, value in given.items() if key in known and value is not None}
    own = {**(METHODS[name].typical if name in METHODS else {}), **own}
    own |= {"guarantee": "metric"} if "metric" in own else {}
    try:
        return build(name, own)
    except InvalidParameter:
        if "delta" not in known or "delta" in own:
            raise
        return build(name, {**own, "delta": DELTA})
