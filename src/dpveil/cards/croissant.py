"""Cards as JSON-LD: Croissant 1.1 with its vocabulary for responsible AI, and terms of dpveil for promises.

Source: Croissant Format Specification 1.1 and Croissant RAI 1.0 (MLCommons 2024 to 2026; Akhtar et al. 2024).
"""

from __future__ import annotations

import glob
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from dpveil.accounting import compose
from dpveil.accounting.meaning import NONE, strength
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import this_tool
from dpveil.core.guarantee import Guarantee, Scope, count_noun
from dpveil.core.numbers import Json
from dpveil.errors import (
    BudgetRefused,
    CertificateError,
    DataError,
    InvalidParameter,
    OutputError,
    UnsupportedRelation,
    UsageError,
)
from dpveil.io.folders import real
from dpveil.io.names import escape_text, format_of, show_path
from dpveil.noise.bits import SECURE
from dpveil.numbers.expected_error import column
from dpveil.release.saving import SUFFIX
from dpveil.release.verification import Verification
from dpveil.synthesis.plan import SHEET
from dpveil.synthesis.saving import METHOD, SetCertificate

CHECK: Final = (
    "a card is made of what dpveil verify finds publishable: mend the folder, or leave the file out"
)
UNPACK: Final = (
    "unpack it (docs, Many photos), and make the card of the folder of its images and certificates"
)
NO_RELEASES: Final = "name a folder of releases, or one that dpveil synthesize made"


@dataclass(frozen=True)
class Listed:
    """One picture: its `name` below the folder, with slashes, the SHA-256 of its bytes, and its `format`.

    `certificate` and `notes` are those of a release; a picture of a synthetic set has none of its own.
    `picture` is False for a contact sheet.
    """

    name: str
    sha256: str
    format: str
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()
    picture: bool = True

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise about this picture, if it has one of its own."""
        return None if self.certificate is None else self.certificate.composition


def releases(folder: Path, found: Sequence[Verification]) -> tuple[Listed, ...]:
    """Return the releases of a folder, sorted by name; `found` is the verification of every picture in it.

    All of it would be published with the card, so one file that is no release refuses the whole: raises
    `CertificateError` if a file is not consistent, has no certificate, or may not be published for another
    reason than its strength, and `OutputError` for names that a card cannot state.
    """
    if not found:
        raise CertificateError("there are no releases in the folder", hint=NO_RELEASES)
    if packed := next((one.inside for one in found if one.inside is not None), None):
        problem = (
            f"{escape_text(show_path(packed))} holds several releases in one file, which a card cannot list"
        )
        raise CertificateError(problem, hint=UNPACK)
    wrong = [(one.path, why) for one in found if (why := _exclusion_reason(one))]
    if wrong:
        path, why = wrong[0]
        more = f" (and {count_noun(len(wrong) - 1, 'other file')})" if len(wrong) > 1 else ""
        raise CertificateError(f"{escape_text(show_path(path))}: {escape_text(why)}{more}", hint=CHECK)
    clips = [one.path for one in found if not isinstance(one.certificate, Certificate)]
    if clips:
        problem = f"{escape_text(show_path(clips[0]))} is a clip, and a card lists pictures"
        raise CertificateError(problem, hint="keep clips in a folder of their own")
    return tuple(sorted((_list_file(folder, one) for one in found), key=lambda one: one.name))


def pictures(stated: SetCertificate) -> tuple[Listed, ...]:
    """Return the files of a synthetic set, sorted by name.

    Raises `CertificateError` unless it is made from secure bits.
    """
    if stated.bits != SECURE:
        raise CertificateError(f"the set was made from {stated.bits} bits", hint=CHECK)
    names = sorted(stated.files)
    return tuple(Listed(name, stated.files[name], "png", picture=name != SHEET) for name in names)


def prefix(folder: Path, out: Path) -> str:
    """Return what leads from a card at `out` to the files of `folder`: empty, or names with a slash each.

    Raises `UsageError` unless the card lies in the folder itself or in one above it, so that no name in it
    leads out of the card's own folder, and `OutputError` for names that a card cannot state.
    """
    home, inner = real(out.parent), real(folder)
    if not inner.is_relative_to(home):
        problem = f"the card {show_path(out)} would lie beside the files that it lists, or below them"
        raise UsageError(problem, hint="write it to the folder itself, or to one above it")
    return "".join(f"{_encode_name(part)}/" for part in inner.relative_to(home).parts)


def _exclusion_reason(found: Verification) -> str:
    """Return why a file has no place in a card; empty if it has one."""
    stated = found.certificate
    if found.status == "unprotected":
        return "it is a copy of the original and carries no guarantee"
    if found.status != "consistent" or stated is None or stated.output is None or stated.composition is None:
        return "; ".join(found.problems) or "it is no release"
    others = [objection for objection in found.objections if objection != NONE]
    return found.refused or found.untrusted or (f"not publishable: {', '.join(others)}" if others else "")


def _list_file(folder: Path, found: Verification) -> Listed:
    parts = found.path.relative_to(folder).parts
    stated = found.certificate
    if stated is None or stated.output is None:
        raise CertificateError("there is no certificate", hint=CHECK)
    name = "/".join(map(_encode_name, parts))
    return Listed(name, stated.output.sha256, format_of(name), stated, found.notes)


def _encode_name(part: str) -> str:
    """Return one name of a path; raises `OutputError` if a card cannot state it as part of an address."""
    if part in (".", "..") or not part.isprintable() or "\\" in part or "/" in part:
        problem = f"a card cannot state the name {escape_text(show_path(part))}"
        raise OutputError(problem, hint="rename it, without control characters and backslashes")
    return part


FILE: Final = ("file", "output")
"""Columns that may name files; the second one is that of a manifest."""
People = Mapping[str, frozenset[str]]
"""The people of each file, by its name below the folder; a file of nobody known is not among the keys."""
CASE: Final = "{} and {} differ in upper and lower case only, and count as two people{}"


def name_of(person: str) -> str:
    r"""Return a person's name in NFC: an accented letter may be written in several ways that look the same.

    >>> name_of("Jose\u0301") == "Jos\xe9"
    True
    """
    return unicodedata.normalize("NFC", person)


def headcount(count: int) -> str:
    """Return a number of people in words.

    >>> headcount(1), headcount(4260)
    ('1 person', '4,260 people')
    """
    return f"{count:,} {'person' if count == 1 else 'people'}"


def similar_names(people: Iterable[str]) -> list[str]:
    """Return a line to tell if names of people differ in upper and lower case only; it names two of them.

    >>> similar_names(["Ann", "Bob", "ann", "ANN", "bob"])
    ['ANN and Ann differ in upper and lower case only, and count as two people (5 names are so)']
    >>> similar_names(["ann", "Bob"])
    []
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for person in sorted(set(map(name_of, people))):
        groups[name_of(person.casefold())].append(person)
    several = [names for names in groups.values() if len(names) > 1]
    if not several:
        return []
    many = sum(map(len, several))
    return [CASE.format(*map(escape_text, several[0][:2]), f" ({many:,} names are so)" if many > 2 else "")]


def by_folder(names: Iterable[str]) -> People:
    """Return the first folder on each file's way as its person, by `name_of`; files in no folder have none.

    >>> by_folder(["ada/1.png", "ada/x/2.png", "3.png"])
    {'ada/1.png': frozenset({'ada'}), 'ada/x/2.png': frozenset({'ada'})}
    """
    return {name: frozenset([name_of(name.partition("/")[0])]) for name in names if "/" in name}


def by_table(path: Path, person: str, names: Iterable[str], folder: Path) -> People:
    """Return the people that a CSV table states for the files `names` of `folder`.

    A row names a file (columns `FILE`; below the folder, or with the folder in front) and in the column
    `person` who is in it, told apart by `name_of`; a file of several people has a row for each. Rows without
    a file are skipped, and a file whose rows name nobody has no person. No file is opened but the table.
    Raises `DataError` for a table that cannot be read and for a row whose file is not in the folder, and
    `InvalidParameter` for missing columns.
    """
    files, people = _files(path), column(path, person)
    if len(files) != len(people):
        raise DataError(f"{show_path(path)} was changed while it was read", hint="run this again")
    known = _places(names, folder)
    found: dict[str, set[str]] = defaultdict(set)
    for number, (file, who) in enumerate(zip(files, people, strict=True), 1):
        meant = known[file.removeprefix("./")] if file else ()
        if file and len(meant) != 1:
            what = "more than one file" if meant else "no file"
            raise DataError(
                f"row {number} of {show_path(path)}, {escape_text(file)}, is {what} of {show_path(folder)}",
                hint="name each file as it lies below the folder, and leave out what is not there",
            )
        for name in meant if who else ():
            found[name].add(name_of(who))
    return {name: frozenset(who) for name, who in found.items()}


def _places(names: Iterable[str], folder: Path) -> Mapping[str, set[str]]:
    """Return the files that each text may mean: a name below the folder, or one with the folder in front."""
    known: dict[str, set[str]] = defaultdict(set)
    for name in names:
        for place in (name, (folder / name).as_posix()):
            known[place].add(name)
    return known


def _files(path: Path) -> list[str]:
    """Return the cells that name files; raises as `by_table` does."""
    first, second = FILE
    try:
        return column(path, first)
    except InvalidParameter:
        try:
            return column(path, second)
        except InvalidParameter:
            problem = f"{show_path(path)} has no column that names files"
            raise DataError(problem, hint=f"name one of its columns {first}") from None


ALONE: Final = "give releases under another relation, or of another kind, a folder and a card of their own"
ANYBODY: Final = "anybody"
"""Who is in all photos, as far as is known, where nobody is named."""


@dataclass(frozen=True)
class Person:
    """One person's `total` over `releases`, which counts photos of nobody known as well."""

    name: str
    releases: int
    total: Guarantee


@dataclass(frozen=True)
class Totals:
    """The totals of all `people`, sorted by name, and of all releases `together`, None if they have none.

    `unnamed` are the files of nobody known. Where nobody is named at all, the one of the people is `ANYBODY`,
    who may be in every photo, and `named` is 0.
    """

    people: tuple[Person, ...]
    named: int
    unnamed: tuple[str, ...]
    together: Guarantee | None

    @property
    def most(self) -> tuple[tuple[Guarantee, int], ...]:
        """What no person's total exceeds, for each kind and relation, with the number of people.

        Numbers are the largest of any of them, each for itself.
        """
        groups: dict[tuple[str, str], list[Guarantee]] = defaultdict(list)
        for person in self.people:
            groups[person.total.kind, str(person.total.relation)].append(person.total)
        return tuple((_largest(group), len(group)) for _, group in sorted(groups.items()))


def totals(files: Sequence[Listed], people: People) -> Totals:
    """Return what the releases of each person promise together; raises `BudgetRefused` where that is nothing.

    That is so for heuristic releases, and where relations or kinds do not compose. Guarantees of a metric
    count as pure, with ε × diameter.
    """
    parts = {one.name: _composable(one.name, one.guarantee) for one in files}
    unnamed = tuple(name for name in parts if name not in people)
    loose = [] if not unnamed else [_sum(ANYBODY, [parts[name] for name in unnamed])]
    mine: dict[str, list[Guarantee]] = defaultdict(list)
    for name, part in parts.items():
        for person in people.get(name, ()):
            mine[person].append(part)
    found = tuple(
        Person(person, len(own) + len(unnamed), _sum(person, [*own, *loose]))
        for person, own in sorted(mine.items())
    )
    together = _compose_or_none([*parts.values()])
    return Totals(found or (Person(ANYBODY, len(unnamed), loose[0]),), len(found), unnamed, together)


def of_set(guarantee: Guarantee, pictures: int) -> Totals:
    """Return the totals of a synthetic set, whose one promise is about all photos of a person."""
    return Totals((Person(ANYBODY, pictures, guarantee),), 0, (), guarantee)


def _composable(name: str, guarantee: Guarantee | None) -> Guarantee:
    """Return a guarantee that composes, without the words of its scope; raises `BudgetRefused`."""
    if guarantee is None or not guarantee.formal:
        problem = f"{escape_text(name)} has no formal guarantee, and so no total with others"
        raise BudgetRefused(problem, hint="leave it out, or release the photo by another method")
    bare = replace(guarantee, scope=Scope(""))
    if guarantee.kind != "metric":
        return bare
    if guarantee.diameter is None:
        problem = (
            f"{escape_text(name)} has a metric guarantee without a diameter, and so no total with others"
        )
        raise BudgetRefused(problem, hint="leave it out, or release the photo by another method")
    epsilon = (guarantee.epsilon or Fraction(0)) * guarantee.diameter
    return Guarantee(kind="pure", epsilon=epsilon, relation=bare.relation, scope=bare.scope)


def _sum(who: str, parts: Sequence[Guarantee]) -> Guarantee:
    try:
        return compose(parts)
    except UnsupportedRelation as error:
        problem = f"the releases of {escape_text(who)} have no total: {error.message}"
        raise BudgetRefused(problem, hint=ALONE) from error


def _compose_or_none(parts: Sequence[Guarantee]) -> Guarantee | None:
    try:
        return compose(parts)
    except UnsupportedRelation:
        return None


def _largest(group: Sequence[Guarantee]) -> Guarantee:
    """Return a guarantee that holds wherever one of these does; they are of one kind and relation."""
    names = ("epsilon", "delta", "rho")
    numbers: dict[str, Any] = {
        name: max((value for one in group if (value := getattr(one, name)) is not None), default=None)
        for name in names
    }
    return replace(group[0], **numbers)


NAMESPACE: Final = "urn:dpveil:card:"
"""The namespace of dpveil's terms. It is a name and no address: nothing has to be fetched to read a card."""
CR: Final = (
    *(
        "arrayShape",
        "citeAs",
        "column",
        "conformsTo",
        "containedIn",
        "equivalentProperty",
        "extract",
        "field",
    ),
    *("fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath"),
    *("key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
    *("samplingRate", "separator", "source", "subField", "transform"),
)
"""Terms of Croissant that a context names."""


def context() -> dict[str, Json]:
    """Return the context of JSON-LD: what the names in a card stand for."""
    names = {name: f"cr:{name}" for name in CR} | {"conformsTo": "dct:conformsTo"}
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        **names,
        "cr": "http://mlcommons.org/croissant/",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/",
        "dpveil": NAMESPACE,
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "rai": "http://mlcommons.org/croissant/RAI/",
        "sc": "https://schema.org/",
    }


CROISSANT: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
"""What a card conforms to."""
MEDIA: Final = {name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")}
"""Media types by format."""
NO_PERSON: Final = "{} no person's name: such a photo may be of anybody, and counts for everybody"
SAME: Final = (
    "Totals of people hold for what every release of a photo covers: two releases of one photo with"
    " different regions may show, together, all of it."
)
TOLD: Final = (
    "Totals of people are as complete as the names of who is in which photo, which nothing here can check."
)
OTHERS: Final = "Other releases of the same people add to this, wherever they are."
ASSURED: Final = (
    "Guarantees were computed again from certificates; unsigned ones show inconsistency, not forgery."
)
TO_FILL: Final = (
    *(
        "license",
        "url",
        "creator",
        "datePublished",
        "rai:dataCollection",
        "rai:dataUseCases",
        "rai:dataBiases",
    ),
    "rai:dataSocialImpact",
)
"""Fields that Croissant or its RAI vocabulary asks for, and that no certificate knows."""


@dataclass(frozen=True)
class About:
    """What only the publisher knows of a data set: its `name`, and what may be empty."""

    name: str
    license: str = ""
    url: str = ""
    creator: str = ""
    published: str = ""

    def fields(self) -> dict[str, Json]:
        """Return the fields that are not empty."""
        creator: Json = {"@type": "sc:Organization", "name": self.creator} if self.creator else ""
        given = {
            "license": self.license,
            "url": self.url,
            "creator": creator,
            "datePublished": self.published,
        }
        return {name: value for name, value in given.items() if value}


def card(
    about: About,
    files: Sequence[Listed],
    totals: Totals,
    before: str = "",
    made: SetCertificate | None = None,
) -> dict[str, Json]:
    """Return the card of a data set; its files lie at `before` and their names, seen from the card.

    `made` is the certificate of a synthetic set. Nobody's name is in the card, and no file says whose it is;
    how many people there are is. Numbers are rounded up to 15 digits. Raises `BudgetRefused` for numbers
    beyond all floats.
    """
    images = [one for one in files if one.picture]
    return {
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": list(CROISSANT),
        "name": about.name,
        "description": _description(images, totals, made),
        **about.fields(),
        "rai:dataPreprocessingProtocol": _methods(images, made),
        "rai:personalSensitiveInformation": _protection(totals, made),
        "rai:dataLimitations": _limits(totals, made),
        "dpveil:perPerson": [
            _promise(total) | ({"dpveil:people": number} if totals.named else {})
            for total, number in totals.most
        ],
        **({} if totals.together is None else {"dpveil:together": _promise(totals.together)}),
        "dpveil:withoutPerson": len(totals.unnamed),
        **({} if made is None else _generation_terms(METHOD, made.plan.parameters(), made.tool)),
        "distribution": [
            *(_file(number, one, before) for number, one in enumerate(files, 1)),
            _set(images, before, digits=made is not None),
        ],
        "recordSet": [_records()],
    }


def number(value: Fraction) -> int | float:
    """Return a JSON number of at most 15 digits that is not below `value`, so that no reader rounds it down.

    Raises `BudgetRefused` beyond all floats.

    >>> number(Fraction(1, 10)), number(Fraction(1, 3)), number(Fraction(20))
    (0.1, 0.333333333333334, 20)
    """
    digits = Context(prec=15, rounding=ROUND_CEILING)
    found = float(digits.divide(Decimal(value.numerator), Decimal(value.denominator)))
    while math.isfinite(found) and Fraction(repr(found)) < value:  # below what floats have in full precision
        found = math.nextafter(found, math.inf)
    if not math.isfinite(found):
        raise BudgetRefused(
            "a guarantee is beyond all numbers", hint="leave its file out: it promises nothing"
        )
    return int(found) if found.is_integer() and found < 10**15 else found


def _promise(guarantee: Guarantee) -> dict[str, Json]:
    """Return a guarantee in terms of dpveil."""
    numbers = {
        name: number(value)
        for name in ("epsilon", "delta", "rho", "diameter")
        if (value := getattr(guarantee, name)) is not None
    }
    told: dict[str, Json] = {"kind": guarantee.kind, **numbers, "relation": guarantee.relation.name}
    told |= {} if guarantee.metric is None else {"metric": guarantee.metric}
    told |= {} if guarantee.relation.m is None else {"pixels": guarantee.relation.m}
    told |= {"neighbours": guarantee.relation.in_words(), "strength": strength(guarantee)}
    if guarantee.scope.covers:
        told |= {"covers": guarantee.scope.covers, "inTheClear": list(guarantee.scope.in_the_clear)}
    return {"@type": "dpveil:Guarantee"} | {f"dpveil:{name}": value for name, value in told.items()}


def _generation_terms(mechanism: str, parameters: dict[str, Json], tool: str) -> dict[str, Json]:
    """Return by what something was drawn."""
    given: Json = {"@type": "@json", "@value": parameters}
    return {"dpveil:mechanism": mechanism, "dpveil:parameters": given, "dpveil:tool": tool}


def _file(place: int, one: Listed, before: str) -> dict[str, Json]:
    """Return one file; its address is relative to the card, and never leads out of its folder."""
    told: dict[str, Json] = {
        "@type": "cr:FileObject",
        "@id": f"file-{place}",
        "name": before + one.name,
        "contentUrl": quote(before + one.name),
        "encodingFormat": MEDIA[one.format],
        "sha256": one.sha256,
    }
    stated = one.certificate
    if stated is None or one.guarantee is None:
        return told
    return {
        **told,
        "dpveil:guarantee": _promise(one.guarantee),
        **_generation_terms(str(stated.method), dict(stated.parameters), stated.tool),
        "dpveil:postProcessing": list(stated.post_processing),
        "dpveil:certificate": quote(f"{before}{one.name}{SUFFIX}"),
        "description": "; ".join([str(one.guarantee), *one.notes]),
    }


def _set(images: Sequence[Listed], before: str, *, digits: bool) -> dict[str, Json]:
    """Return all pictures as a set of files; those of a synthetic set are named by `digits`."""
    first = "[0-9]*" if digits else "*"
    paths = [PurePosixPath(before + one.name) for one in images]
    places = {(str(path.parent), path.suffix) for path in paths}
    patterns = [
        ("" if parent == "." else f"{glob.escape(parent)}/") + first + suffix
        for parent, suffix in sorted(places)
    ]
    return {
        "@type": "cr:FileSet",
        "@id": "images",
        "name": "images",
        "encodingFormat": [*sorted({MEDIA[one.format] for one in images})],
        "includes": [*patterns],
    }


def _records() -> dict[str, Json]:
    """Return the records that a reader makes of the pictures: the name of a file, and its picture."""
    read = {"path": ("sc:Text", "fullpath"), "image": ("sc:ImageObject", "content")}
    return {
        "@type": "cr:RecordSet",
        "@id": "pictures",
        "name": "pictures",
        "key": {"@id": "pictures/path"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"pictures/{name}",
                "name": name,
                "dataType": kind,
                "source": {"fileSet": {"@id": "images"}, "extract": {"fileProperty": part}},
            }
            for name, (kind, part) in read.items()
        ],
    }


def _description(images: Sequence[Listed], totals: Totals, made: SetCertificate | None) -> str:
    if made is not None:
        return f"{count_noun(len(images), 'picture')} of nobody, made by {METHOD}: {made.plan.guarantee}."
    return (
        f"{count_noun(len(images), 'photo')} with regions replaced by {this_tool()};"
        f" {_largest_total(totals)}."
    )


def _largest_total(totals: Totals) -> str:
    """Return in words what no person's total exceeds."""
    return "per person at most " + ", or ".join(str(total) for total, _ in totals.most)


def _methods(images: Sequence[Listed], made: SetCertificate | None) -> list[Json]:
    """Return how the files were made, a sentence for each method."""
    if made is not None:
        return [f"All pictures were drawn by {METHOD}, from noisy votes of people's photos."]
    used = [str(one.certificate.method) for one in images if one.certificate is not None]
    return [f"{count_noun(used.count(name), 'photo')} by {name}." for name in sorted(set(used))]


def _protection(totals: Totals, made: SetCertificate | None) -> list[Json]:
    """Return what of people is protected, and how well."""
    words = [f"Promised {_largest_total(totals)}."]
    for total, _ in totals.most:
        relation = total.relation.in_words()
        each = "" if made is not None else "two collections in which each photo of one person may differ: "
        words.append(f"Neighbours of {total}: {each}{relation}. Its strength is {strength(total)}.")
    if made is None:
        words.append(
            "What a photo shows outside of its regions is in the clear: see dpveil:inTheClear of each."
        )
    return [*words]


def _limits(totals: Totals, made: SetCertificate | None) -> list[Json]:
    """Return what the promises do not say."""
    if made is not None:
        return [*made.warnings, OTHERS, "The certificate of a set is not signed."]
    bare = count_noun(len(totals.unnamed), "photo")
    have = f"{bare} {'has' if len(totals.unnamed) == 1 else 'have'}"
    return [SAME, TOLD, OTHERS, ASSURED, *([NO_PERSON.format(have) + "."] if totals.unnamed else [])]
