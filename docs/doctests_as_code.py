"""Griffe extension: docstrings here are plain text, while the site builder reads Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>>.*(?:\n(?!\n).+)*", re.MULTILINE)
CODE = re.compile(r"(```.*?```|`[^`]*`)", re.DOTALL)
MARKUP = re.compile(r"([\[\]<_])")


def to_markdown(text: str) -> str:
    """Return a plain docstring as Markdown: doctests as code blocks, brackets escaped."""
    fenced = DOCTEST.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
    parts = CODE.split(fenced)
    return "".join(part if index % 2 else MARKUP.sub(r"\\\1", part) for index, part in enumerate(parts))


class DoctestsAsCode(griffe.Extension):
    """Converts every docstring that is shown to Markdown."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
