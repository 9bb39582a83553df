"""`dpveil card`: a data-set card of a folder of releases, with what they promise each person together."""

from __future__ import annotations

import json as written
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.accounting.meaning import NONE, check_strength_name, strength
from dpveil.cards.croissant import CHECK, TO_FILL, Listed, card, pictures, prefix, releases, together
from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, AtLeast, MaxPixels, Text, Trust
from dpveil.cli.verify import results, sets_below
from dpveil.core.guarantee import Guarantee, count_noun, strength_text
from dpveil.errors import CertificateError, InvalidParameter, UsageError
from dpveil.io.folders import DATA_SET, is_data_set, is_folder, is_link, real
from dpveil.io.names import escape_text, show_path
from dpveil.io.untrusted_files import is_present
from dpveil.io.writing import write_together
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.saving import SUFFIX
from dpveil.verifying import SetVerification, verify

if TYPE_CHECKING:
    from dpveil.synthesis.saving import SetCertificate


LOW: Final = {NONE: "weak", "weak": "moderate"}
"""Strengths that are warned of, and the least --at-least that refuses each."""


def warnings(files: Sequence[Listed], total: Guarantee) -> Iterator[str]:
    """Yield a line for each kind of what hardly protects anybody."""
    for grade, least in LOW.items():
        stated = [(one.name, one.guarantee) for one in files if one.guarantee is not None]
        low = [f"{escape_text(name)} ({each})" for name, each in stated if strength(each) == grade]
        if low:
            many = count_noun(len(low), "release")
            yield f"{grade}: {many}, such as {low[0]}; --at-least {least} refuses such"
    if strength(total) in LOW:
        promise = f"{total}: {strength_text(total, strength(total))}"
        yield f"{strength(total)} in all: {promise}, as one person may be in every photo"


SUFFIXES: Final = (".json", ".jsonld")


def card_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Releases, or a synthetic data set.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The card, in FOLDER or above it, such as croissant.json.")
    ],
    at_least: AtLeast = None,
    trust: Trust = None,
    name: Annotated[Text, typer.Option(metavar="NAME", help="Default: the name of FOLDER.")] = None,
    license: Annotated[  # noqa: A002  the field's word
        str, typer.Option(metavar="TEXT", help="The license, best as an address.")
    ] = "",
    url: Annotated[str, typer.Option(metavar="URL", help="Where the data set is, or will be.")] = "",
    creator: Annotated[str, typer.Option(metavar="NAME", help="Who made the data set.")] = "",
    published: Annotated[str, typer.Option(metavar="DATE", help="When it is published: 2026-12-31.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing card.")] = False,
    max_pixels: MaxPixels = 100_000_000,
    json: AsJson = False,
) -> int:
    """Write a data-set card (Croissant) that states what releases promise, each by itself and together.

    \b
    Examples:
      dpveil card private/ --out private/croissant.json

    Every file is verified first. A person may be in all photos, so the promise about a person is the sum.
    Exit code 1: a picture in FOLDER is no publishable release. Exit code 3: releases have no total; nothing
    is written then.
    """
    fields = {"license": license, "url": url, "creator": creator, "published": published}
    fields["name"] = name or real(folder).name or "releases"
    _check(folder, out)
    before = prefix(folder, out)
    files, total, made = _read(folder, (at_least, trust, max_pixels))
    document = card(fields, files, total, before, made)
    text = written.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_together([(out, text.encode(errors="backslashreplace"))], replace=force)
    _tell(out, files, total, document, json)
    return exits.DONE


def _check(folder: Path, out: Path) -> None:
    if not is_folder(folder) or is_link(folder):
        raise UsageError(f"{folder} is not a folder", hint="give a folder of releases, and no link to one")
    if out.suffix.lower() not in SUFFIXES or out.name.endswith(SUFFIX):
        hint = f"end it in .json, and not in {SUFFIX}"
        raise InvalidParameter("out", str(out), "is not the name of a card", hint=hint)
    if is_present(folder / DATA_SET) and real(out.parent).is_relative_to(real(folder)):
        raise UsageError("a synthetic set holds its own files only", hint="write the card to a folder above")


def _read(
    folder: Path, asked: tuple[Text, list[Path] | None, int]
) -> tuple[Sequence[Listed], Guarantee, SetCertificate | None]:
    at_least, trust, max_pixels = asked
    trusted: Sequence[PublicKey] | None = trusted_keys(trust or None)
    least = None if at_least is None else check_strength_name(at_least)
    if not is_data_set(folder):
        if sets := sets_below(folder):
            first = escape_text(show_path(sets[0]))
            problem = f"{escape_text(show_path(folder))} holds {count_noun(len(sets), 'synthetic data set')}"
            hint = f"make a card for each set: dpveil card {first} --out {first}.json"
            raise CertificateError(f"{problem}, and a card is about releases or about one set", hint=hint)
        files = releases(folder, [*results([folder], max_pixels, least, trusted)])
        return files, together(files), None
    found = verify(folder, at_least=least, trust=trusted)
    if not isinstance(found, SetVerification) or found.certificate is None or not found.sound:
        why = found.refused or found.untrusted or "; ".join(found.problems)
        raise CertificateError(f"{escape_text(show_path(folder))}: {why}", hint=CHECK)
    made = found.certificate
    return pictures(made), made.composition, made


def _tell(
    out: Path, files: Sequence[Listed], total: Guarantee, document: dict[str, Any], as_json: bool
) -> None:
    empty = [field for field in TO_FILL if field not in document]
    if as_json:
        told = {"total": total.to_json(), "strength": strength(total)}
        say.document({"card": str(out), "files": len(files), **told, "to_fill": empty})
    else:
        of = " of a synthetic data set" * all(one.certificate is None for one in files)
        say.answer(f"{out}: {count_noun(len(files), 'file')}{of}")
        say.answer(f"per person    at most {total}: {strength_text(total, strength(total))}")
    for line in warnings(files, total):
        say.note(f"WARNING: {line}")
    say.note(f"to fill in: {', '.join(empty)}")
