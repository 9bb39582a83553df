"""Names of subjects: paths such as studio/album-7, so that a name says for whom else a debit counts."""

from __future__ import annotations

import unicodedata
from typing import Final

from dpveil.errors import InvalidParameter
from dpveil.io.names import quoted

LONGEST: Final = 200
"""Most characters of a subject."""
DEEPEST: Final = 16
"""Most levels of a subject."""


def check_subject(subject: object) -> str:
    """Return a subject in Unicode's composed form (NFC).

    Raises `InvalidParameter` unless it has 1..200 printable characters and 1..16 parts between slashes, of
    which none is empty, . or .., or starts or ends with a space.

    >>> check_subject("studio/album-7")
    'studio/album-7'
    """
    hint = "such as album-7, or studio/album-7 to count for studio, too"
    if not isinstance(subject, str):
        shown = None if subject is None else type(subject).__name__
        raise InvalidParameter("subject", shown, "is no name of a subject", hint=hint)
    name = unicodedata.normalize("NFC", subject[: LONGEST + 1])
    if max(len(subject), len(name)) > LONGEST:
        raise InvalidParameter("subject", None, f"has more than {LONGEST} characters", hint=hint)
    parts, problem = name.split("/"), ""
    if not name.isprintable() or any(not part or part != part.strip() for part in parts):
        problem = "has empty parts, spaces or control characters"
    elif not {".", ".."}.isdisjoint(parts):
        problem, hint = "has a part . or ..", "name it from the top"
    elif len(parts) > DEEPEST:
        problem = f"has more than {DEEPEST} levels"
    if problem:
        raise InvalidParameter("subject", quoted(subject), problem, hint=hint)
    return name


def path_to(subject: str) -> list[str]:
    """Return a subject's ancestors and itself, from the top.

    >>> path_to("studio/2026/album-7")
    ['studio', 'studio/2026', 'studio/2026/album-7']
    """
    parts = subject.split("/")
    return ["/".join(parts[:level]) for level in range(1, len(parts) + 1)]


def is_under(subject: str, other: str) -> bool:
    """Whether a debit of `subject` counts for `other`.

    >>> is_under("studio/album-7", "studio"), is_under("studio-2", "studio")
    (True, False)
    """
    return subject == other or subject.startswith(f"{other}/")
