"""URLs of ledgers in PostgreSQL: which server they name, and what of them is taken."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from dpveil.errors import UsageError
from dpveil.io.names import shown

SCHEMES: Final = ("postgresql", "postgres")
OPTIONS: Final = frozenset({"host", "port", "sslmode", "sslrootcert", "connect_timeout"})
"""Parameters of a URL that are taken: where the server is, and how it is trusted."""


def target_of(url: str) -> tuple[dict[str, str], str]:
    """Return the server of a URL as psycopg takes it, and how messages name it: without its password.

    Raises `UsageError` for anything but a user, a password, a host, a port, a database and `OPTIONS`.

    >>> target_of("postgresql://clerk:secret@db.example/budgets")[1]
    'postgresql://db.example/budgets'
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        found = {"user": parts.username, "password": parts.password, "host": parts.hostname}
        found |= {"port": str(parts.port) if parts.port else None, "dbname": parts.path[1:]}
    except ValueError as error:
        raise _no_url("it cannot be read") from error
    if parts.scheme not in SCHEMES or parts.fragment:
        raise _no_url("it is no postgresql:// URL")
    if wrong := sorted(set(options) - OPTIONS):
        raise _no_url(f"it has the parameter {shown(wrong[0])}")
    target = {name: unquote(value) for name, value in found.items() if value} | options
    if "@" in parts.path:
        raise _no_url("a / in its password has to be written %2F")
    if "dbname" not in target or not all(value.isprintable() for value in target.values()):
        raise _no_url("it names no database")
    return target, f"postgresql://{shown(target.get('host', 'localhost'))}/{shown(target['dbname'])}"


def _no_url(why: str) -> UsageError:
    return UsageError(
        f"the URL of the ledger cannot be used: {why}",
        hint="postgresql://USER:PASSWORD@HOST/DATABASE; ?sslmode=verify-full or ?host=/folder may follow",
    )
