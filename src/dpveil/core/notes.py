"""Sentences that go with a release and its certificate: notes, cautions, asides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpveil.errors import fill_words


class Note(str):
    """A sentence with the names of settings in braces, which are written as in Python with their values.

    >>> note = Note("{protect} replaces more", protect="box")
    >>> print(note)
    protect="box" replaces more
    >>> note.with_options({"protect": "--protect"})
    '--protect box replaces more'
    """

    form: str
    settings: Mapping[str, str]

    def __new__(cls, form: str, **settings: str) -> Note:
        note = super().__new__(cls, fill_words(form, {n: f'{n}="{value}"' for n, value in settings.items()}))
        note.form, note.settings = form, settings
        return note

    def with_options(self, options: Mapping[str, str]) -> str:
        """Return the sentence with the settings that `options` has written as on the command line."""
        known = {n: f"{options[n]} {value}" for n, value in self.settings.items() if n in options}
        return str(Note(fill_words(self.form, known), **self.settings))


class Caution(str):
    """A warning of a certificate, which is printed before all others."""


class Aside(str):
    """A sentence for information, which is no warning."""


class Unfinished(Aside):
    """A sentence about what is kept beside a release that was skipped, which is told of these, too."""


def notes_with_options(notes: Iterable[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return notes as `options`, such as {"protect": "--protect"}, write the settings that they name."""
    return tuple(note.with_options(options) if isinstance(note, Note) else note for note in notes)
