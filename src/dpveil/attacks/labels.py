"""Attacks by their labels: a name, an attack of what another gives, or several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dpveil.attacks.base import Attack, installed
from dpveil.attacks.joined import Joint
from dpveil.attacks.wrapped import Wrapped
from dpveil.core.registry import ATTACKS
from dpveil.errors import InvalidParameter

LONGEST: Final = 200
"""Most characters of a label."""
HINT: Final = "such as pixels, restored(embedding) or context+placement+pixels"


def attack(label: str) -> Attack:
    """Return the attack with this label: `name`, `name:setting`, `wrapper(label)` or `label+label`.

    Raises `UnknownName` for a name that is not in the registry, `InvalidParameter` for other text, and what
    the attack raises for its setting.

    >>> attack("context+restored(pixels)").reads
    ('pixels', 'context')
    >>> attack("denoised:median:3(embedding)").step
    'median:3'
    """
    if not label or len(label) > LONGEST:
        raise InvalidParameter("attack", label[:LONGEST], "is no label", hint=HINT)
    parts = _split(label)
    if len(parts) > 1:
        return Joint(tuple(attack(part) for part in parts))
    head, bracket, rest = label.strip().partition("(")
    name, colon, setting = head.partition(":")
    kind = ATTACKS[name]
    if bracket and not (issubclass(kind, Wrapped) and rest.endswith(")")):
        raise InvalidParameter("attack", label, "is no label", hint=HINT)
    if colon and not (setting and hasattr(kind, "of")):
        raise InvalidParameter("attack", label, "has a setting that it does not take", hint=HINT)
    made: Attack = kind.of(setting) if colon else kind()
    return replace(made, inner=attack(rest[:-1])) if bracket else made  # type: ignore[type-var]


def usable(labels: Sequence[str] | None = None) -> list[Attack]:
    """Return the attacks with these labels, or all of the registry's; only those whose extras are there."""
    made = [attack(label) for label in (ATTACKS if labels is None else labels)]
    return [one for one in made if not missing(one)]


def missing(of: Attack) -> tuple[str, ...]:
    """Return the extras that an attack needs and that are not installed."""
    return tuple(extra for extra in of.extras if not installed(extra))


def _split(text: str) -> list[str]:
    """Return the parts between pluses that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
