"""Every method by name: parameters, guarantees, summary and source."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypedDict

from dpveil.core.rationals import Json
from dpveil.core.registry import LATENT, METHODS
from dpveil.errors import InvalidParameter, MissingPlugin, UnknownName, suggestion
from dpveil.mechanisms.method import Method, plain

if TYPE_CHECKING:
    from dpveil.mechanisms.latent import LatentMechanism

REQUIRED: Final = "required"  # listed in place of a parameter's default if there is none
DEFAULT: Final = "attributes"
"""The default method: every face becomes a synthetic face that keeps no attribute."""
UNEXPLAINED: Final = "See the page of the method."  # help of a parameter that has none
BUDGETS: Final = ("epsilon", "delta", "rho")  # parameters that state a budget


class MethodRow(TypedDict):
    """One method: kebab-case name, guarantees, parameters with their defaults, summary, source.

    `kind` is the default kind of guarantee, `kinds` are all kinds that the method can state, depending on its
    parameters. `budgets` are the sets of parameters that determine the noise; exactly one set must be given.
    """

    name: str
    kind: str
    kinds: list[str]
    budgets: list[list[str]]
    parameters: dict[str, Json]
    summary: str
    source: str


def methods() -> list[MethodRow]:
    """Return every method in the table's order; a parameter without a default is "required".

    Methods of plug-ins come last. A plug-in that cannot be loaded is left out with a `PluginWarning`.

    >>> methods()[0]["name"], methods()[0]["parameters"]["epsilon"]
    ('dp-pix', 'required')
    """
    return [row_of(method) for _, method in METHODS.usable()]


def row_of(method: type[Method]) -> MethodRow:
    budgets = [list(names) for names in method.budgets]  # the usual one first
    if required := [name for name in BUDGETS if name in inspect.signature(method).parameters]:
        budgets = budgets or [required]
    return MethodRow(
        name=method.name,
        kind=method.kinds[0],
        kinds=list(method.kinds),
        budgets=budgets,
        parameters=_parameters(method) | dict.fromkeys([] if not budgets else budgets[0], REQUIRED),
        summary=method.summary,
        source=method.source,
    )


def options(method: type[Method]) -> dict[str, tuple[str, str]]:
    """Return the placeholder (empty for a flag) and the help of every parameter of a method, by name."""
    words = {n: text for base in reversed(method.__mro__) for n, text in vars(base).get("help", {}).items()}
    kinds = {name: inspect.getattr_static(method, name, None) for name in method.accepted_parameters()}
    return {n: (getattr(kind, "metavar", "VALUE"), words.get(n, UNEXPLAINED)) for n, kind in kinds.items()}


class MechanismRow(TypedDict):
    """One latent mechanism: name, kind, the name of its distance if any, parameters, summary, source."""

    name: str
    kind: str
    metric: str | None
    parameters: dict[str, Json]
    summary: str
    source: str


def latent_mechanisms() -> list[MechanismRow]:
    """Return every latent mechanism in the table's order, for the method "latent".

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


def build(method: str | Method | None, parameters: Mapping[str, Any]) -> Method:
    """Return the method of that name with these parameters, or a ready-made method unchanged.

    None stands for `DEFAULT`. Raises `UnknownName`, and `InvalidParameter` for parameters that are missing,
    out of range or unknown to the method; both suggest the nearest name.
    """
    if isinstance(method, Method):
        for name, value in parameters.items():
            raise InvalidParameter(
                name, value, "was given with a ready-made method", hint="set it on the method itself"
            )
        return method
    if method is None:
        method = DEFAULT
        for name, value in parameters.items():
            known = METHODS[method].accepted_parameters()
            if name not in known:
                hint = suggestion(name, known).strip() or "leave it out, or name the method that it is for"
                problem = f"is not a parameter of {method}, the default method"
                raise InvalidParameter(name, value, problem, hint=hint)
    if method not in METHODS:
        raise UnknownName("method", str(method), METHODS)
    kind: type[Method] = METHODS[method]
    known = kind.accepted_parameters()
    taken = {*known, *getattr(kind, "__dataclass_fields__", ())}  # `of` refuses fields that are no parameters
    for name, value in parameters.items():
        if name not in taken:
            hint = f"{suggestion(name, known)}{method} takes {', '.join(known)}"
            raise InvalidParameter(name, value, f"is not a parameter of {method}", hint=hint)
    return kind.of(parameters)


def method_from_certificate(method: object, parameters: Mapping[str, Json]) -> Method:
    """Return the method that a received certificate states: like `build`, but no parameter can open a file.

    A plug-in is used only if it is installed under exactly this name. Raises `MissingPlugin` for an unknown
    name, `PluginError` for a plug-in that fails, and `InvalidParameter` for values in any form that
    certificates do not use.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise MissingPlugin("method", str(method), METHODS.group)
    made: Method = METHODS[method].stated(parameters)
    return made


def _parameters(kind: type[Method] | type[LatentMechanism]) -> dict[str, Json]:
    found = {f.name: inspect.getattr_static(kind, f.name) for f in fields(kind)}  # type: ignore[arg-type]
    return {
        name: plain(each.default) if each.default is not None else None if each.optional else REQUIRED
        for name, each in found.items()
    }
