"""Every method by name: what it is called, what it takes, what it promises."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final, TypedDict

from dpveil.core.numbers import Json
from dpveil.core.parameters import Parameter
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.faces import TABLE as FACES
from dpveil.mechanisms.latent import TABLE as LATENT
from dpveil.mechanisms.latent import LatentMechanism
from dpveil.mechanisms.method import Method, plain
from dpveil.mechanisms.pixel import TABLE as PIXELS

REQUIRED: Final = "required"
TABLE: Final[dict[str, type[Method]]] = {**PIXELS, **FACES}
"""Every method that releases photos, by name: those of pixels, then those that put other faces in place."""


class MethodRow(TypedDict):
    """One method: kebab-case name, guarantees, parameters with their defaults, summary, source.

    `kind` is the usual kind of guarantee, `kinds` are all that it can state, by its parameters.

    `budgets` are the sets of numbers that say how much noise is drawn; exactly one of them has to be given.
    """

    name: str
    kind: str
    kinds: list[str]
    budgets: list[list[str]]
    parameters: dict[str, Json]
    summary: str
    source: str


def methods() -> list[MethodRow]:
    """Return every method, in the table's order; a parameter without a default is "required".

    >>> methods()[0]["name"], methods()[0]["parameters"]["epsilon"]
    ('dp-pix', 'required')
    """
    return [
        MethodRow(
            name=name,
            kind=m.kinds[0],
            kinds=list(m.kinds),
            budgets=_budgets(m),
            parameters=_defaults(m),
            summary=m.summary,
            source=m.source,
        )
        for name, m in TABLE.items()
    ]


class MechanismRow(TypedDict):
    """One latent mechanism: name, kind, the name of its distance if any, parameters, summary, source."""

    name: str
    kind: str
    metric: str | None
    parameters: dict[str, Json]
    summary: str
    source: str


def latent_mechanisms() -> list[MechanismRow]:
    """Return every latent mechanism, in the table's order: what the method "latent" draws codes with.

    >>> latent_mechanisms()[0]["name"], latent_mechanisms()[0]["metric"]
    ('croft-metric', 'box-mean')
    """
    return [
        MechanismRow(
            name=name,
            kind=m.kind,
            metric=m.metric,
            parameters=_parameters(m),
            summary=m.summary,
            source=m.source,
        )
        for name, m in LATENT.items()
    ]


def build(method: str | Method, parameters: Mapping[str, Any]) -> Method:
    """Return the method of that name with these parameters; a ready-made one is returned as it is.

    Raises `UnknownName`, and `InvalidParameter` for parameters that are missing, out of range or not the
    method's own; both name the nearest that exists.
    """
    if isinstance(method, Method):
        for name, value in parameters.items():
            raise InvalidParameter(
                name, value, "was given beside a ready-made method", hint="put it into the method itself"
            )
        return method
    if method not in TABLE:
        raise UnknownName("method", str(method), TABLE)
    known = TABLE[method].spoken()
    taken = {*known, *getattr(TABLE[method], "__dataclass_fields__", ())}  # also what is there to be refused
    for name, value in parameters.items():
        if name not in taken:
            near = get_close_matches(name, known, n=1)
            hint = (f"did you mean {near[0]}? " if near else "") + f"{method} takes {', '.join(known)}"
            raise InvalidParameter(name, value, f"is not a parameter of {method}", hint=hint)
    return TABLE[method].of(parameters)


def stated(method: object, parameters: Mapping[str, Json]) -> Method:
    """Return the method of a received certificate: like `build`, but no parameter can open or name a file.

    Raises `UnknownName`, and `InvalidParameter` for whatever is not stated as certificates state it.
    """
    if not isinstance(method, str) or method not in TABLE:
        raise UnknownName("method", str(method), TABLE)
    return TABLE[method].stated(parameters)


def _parameters(kind: type[Method] | type[LatentMechanism]) -> dict[str, Json]:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return {name: _default(inspect.getattr_static(kind, name)) for name in names}


def _defaults(method: type[Method]) -> dict[str, Json]:
    usual = _parameters(method)
    return usual | dict.fromkeys(_budgets(method)[0], REQUIRED) if _budgets(method) else usual


def _budgets(method: type[Method]) -> list[list[str]]:
    """Return the ways to give a budget, the usual one first."""
    if method.budgets:
        return [list(names) for names in method.budgets]
    required = [name for name in ("epsilon", "delta", "rho") if name in inspect.signature(method).parameters]
    return [required] if required else []


def _default(parameter: Parameter[Any, Any]) -> Json:
    value = parameter.default
    if value is None:
        return None if parameter.optional else REQUIRED
    return plain(value)
