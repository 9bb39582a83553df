"""The files of the page, in one table, and what browsers are told about all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, StrictUndefined

INDEX: Final = "/"  # the address of the page itself
FOLDER: Final = "/page"  # the folder of the addresses of everything else
KINDS: Final = {"css": "text/css", "svg": "image/svg+xml", "mjs": "text/javascript"}
STATIC: Final = files("dpveil.service.page").joinpath("static")
PAGE_FILES: Final[Mapping[str, str]] = {
    name: KINDS[kind]
    for name in sorted(one.name for one in STATIC.iterdir())
    if (kind := name.rpartition(".")[2]) in KINDS
}
"""The files and their media types."""
PATHS: Final = (INDEX, *(f"{FOLDER}/{name}" for name in PAGE_FILES))
"""Addresses that need no key: they are the same for everybody."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'"
)
"""The content security policy: nothing inline, nothing from elsewhere, and no text that becomes markup."""
HEADERS: Final[Mapping[str, str]] = {"content-security-policy": POLICY, "cache-control": "no-cache"}


@cache
def contents(name: str) -> bytes:
    return STATIC.joinpath(name).read_bytes()


def page(**told: object) -> str:
    """Return the page; `told` fills its template, and every text of it is escaped."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(contents("index.html").decode()).render(told)
