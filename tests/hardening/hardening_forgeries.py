"""Certificates as forgers write them: by mutation of honest ones, by flips of their bytes."""

import random
from copy import deepcopy
from dataclasses import fields
from inspect import getattr_static
from typing import Any

from hardening_certificates import FILES, HEIGHT, WIDTH, sealed, stated

from dpveil.catalogue import build
from dpveil.core.parameters import Count, Flag, OneOf, OptionalCount
from dpveil.core.region import Box
from dpveil.core.registry import METHODS
from dpveil.errors import DPVeilError
from records import record

TRAP = "/proc/self/mem"
"""A file that nobody may open, named wherever a text is."""
NINES = "9" * 999
TEXTS = [
    TRAP, "default", "a\0b", "x" * 300, "../a.png", "~", "/dev/zero", "", " ", "\n", "\x1b[2J", "\x9b",
    "\u202e", "NaN", "inf", "1e999999999", "1e-999", NINES, f"1/{NINES}", "1/0", "-1/3", "1/3", "٣", "0x10",
    "{m}", "%s", "{0.__class__}", "(" * 5000, ", grown to the " * 500 + "x", "a" * 20_000,
    "gaussian:1", "gaussian:1e999", f"median:{'9' * 5000}", "median:٣", "telea", "none",
    "gender=4,age=2", "gender=" + NINES, "gender=4,gender=4", "faces", "whole", "0,0,9" + "9" * 17 + ",1",
    "box, grown to the JPEG blocks", "UNPROTECTED: this", *FILES.values(), *METHODS,
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 3, 16, 255, 256, 2**31, 2**31 + 1, 2**53, 2**63, 2**64, 10**30, 10**40,
    0.1, 0.5, -0.5, 1e-300, 1e300, 5e-324, 1e-12, 1e12, 700, 1e-6, 0.999999, 1e400, float("nan"),
]  # fmt: skip


def value(rng: random.Random, own: Any = None, depth: int = 0) -> Any:
    """Any JSON value, chosen to hurt; mostly of the type of `own`, so that it is read further."""
    if rng.random() < 0.75 and isinstance(own, str | int | float):
        if isinstance(own, bool):
            return not own
        return rng.choice(TEXTS) if isinstance(own, str) else rng.choice([*NUMBERS, own + 1, own - 1])
    if rng.random() < 0.01:
        return "\ud800"
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(TEXTS)
    if kind < 0.8:
        return rng.choice(NUMBERS)
    if kind < 0.9 or depth > 3:
        return rng.choice([None, True, False])
    if kind < 0.95:
        return [value(rng, depth=depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): value(rng, depth=depth + 1) for _ in range(rng.randrange(4))}


def parameters(name: str, rng: random.Random) -> dict[str, Any]:
    """Every parameter of a method, each of a kind that it takes, most of them legal and many extreme."""
    method, made = METHODS[name], {}
    ways = method.budgets or ((),)
    way = rng.choice(ways)
    for field in fields(method):  # type: ignore[arg-type]
        kind = getattr_static(method, field.name)
        budget = field.name in ("epsilon", "delta", "rho") and name != "attributes"
        if field.name in FILES:
            made[field.name] = FILES[field.name]
        elif field.name == "attributes":
            made[field.name] = rng.choice(["gender=4,age=2", "none", "gender=1e-12", f"age=1/{'7' * 12}"])
        elif kind.optional and (
            (budget and way and field.name not in way) or (not budget and rng.random() < 0.6)
        ):
            made[field.name] = None
        elif isinstance(kind, OneOf):
            made[field.name] = rng.choice(kind.words)
        elif isinstance(kind, Flag):
            made[field.name] = rng.random() < 0.5
        elif isinstance(kind, Count | OptionalCount):
            made[field.name] = rng.choice([1, 2, 3, 4, 8, 16, 17, 255, 256, 10**6, 2**31])
        else:
            made[field.name] = rng.choice([*NUMBERS[-7:-2], 1, 0.5, "1/3", 20, 1e5, "1/" + "7" * 300])
    return made


def legal(rng: random.Random) -> dict[str, Any] | None:
    """The honest certificate of extreme settings, or None where they are refused."""
    name = rng.choice(list(METHODS))
    records = []
    faces = 0
    for _ in range(rng.choice([1, 1, 2, 3])):
        x, y = rng.randrange(WIDTH), rng.randrange(HEIGHT)
        box = Box(x, y, rng.randint(1, WIDTH - x), rng.randint(1, HEIGHT - y))
        face = rng.random() < 0.5
        faces += face
        finder = "faces" if face else str(box)
        label = f"face {faces}" if face else f"box {len(records) + 1 - faces}"
        records.append(record(label, box, found=face or rng.random() < 0.5, finder=finder))
    try:
        given = {key: own for key, own in parameters(name, rng).items() if own is not None}
        return stated(build(name, given), records)
    except DPVeilError:
        return None


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path] * bool(path) + [place for key, own in items for place in _places(own, (*path, key))]


def _mutate(data: dict[str, Any], rng: random.Random, others: list[dict[str, Any]]) -> None:
    path = rng.choice(_places(data))
    target: Any = data
    for key in path[:-1]:
        target = target[key]
    own, what = target[path[-1]], rng.randrange(16)
    if what == 0:
        del target[path[-1]]
    elif what == 1 and isinstance(target, list):
        target.insert(rng.randrange(len(target) + 1), deepcopy(own))
    elif what == 2:
        target[path[-1]] = [own]
    elif what == 3:
        target[path[-1]] = {"a": own}
    elif what == 4 and isinstance(own, list):
        own *= rng.choice([0, 2, 60])
    elif what == 5 and isinstance(target, dict):
        target[rng.choice([rng.choice(TEXTS), f"{path[-1]} "])] = own
    elif what == 6:
        other = rng.choice(others)
        target[path[-1]] = deepcopy(other.get(str(path[0]), own))
    elif what in (7, 8) and data.get("method") in list(METHODS):
        data["parameters"] = parameters(data["method"], rng)
    else:
        target[path[-1]] = value(rng, own)


def _bytes(contents: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(contents) + 1)
        what = rng.randrange(4)
        if what == 0:
            contents = contents[:at]
        elif what == 1:
            contents = (
                contents[:at] + bytes(rng.choices(range(256), k=rng.choice([1, 4]))) + contents[at + 1 :]
            )
        elif what == 2:
            contents = contents[:at] + contents[max(0, at - rng.randrange(200)) :]
        else:
            contents = (
                contents[:at] + rng.choice([b"\0", b"[", b'{"a":', b"\xff", b"9" * 50]) * 99 + contents[at:]
            )
    return contents


def forged(index: int, honest: dict[str, dict[str, Any]]) -> tuple[str, bytes]:
    """How the certificate of one index was made, and its bytes: a function of the index alone."""
    rng = random.Random(f"dpveil certificate {index}")  # noqa: S311  no secret depends on it
    names, others = list(honest), list(honest.values())
    data = deepcopy(honest[names[index % len(names)]])
    way = rng.random()
    if way < 0.02 and (settings := legal(rng)) is not None:
        return "legal", sealed(settings)
    if way < 0.2:
        return "bytes", _bytes(sealed(data), rng)
    for _ in range(rng.choice([1, 1, 2, 4])):
        _mutate(data, rng, others)
    return "mutant", sealed(data)
