"""Cards as JSON-LD: Croissant 1.1 with its vocabulary for responsible AI, and terms of dpveil for promises.

Source: Croissant Format Specification 1.1 and Croissant RAI 1.0 (MLCommons 2024 to 2026; Akhtar et al. 2024).
"""

from __future__ import annotations

import glob
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

from dpveil.accounting import compose
from dpveil.accounting.meaning import NONE, strength
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import this_tool
from dpveil.core.guarantee import Guarantee, Scope, count_noun
from dpveil.core.rationals import Json
from dpveil.errors import BudgetRefused, CertificateError, OutputError, UnsupportedRelation, UsageError
from dpveil.io.folders import real
from dpveil.io.names import escape_text, format_of, show_path
from dpveil.noise.bits import SECURE
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


ALONE: Final = "give releases under another relation, or of another kind, a folder and a card of their own"


def together(files: Sequence[Listed]) -> Guarantee:
    """Return what all releases promise together; raises `BudgetRefused` where that is nothing.

    Each release reads a photo of its own with bits of its own. Neighbours are two collections in which every
    photo of one person may differ, each as its relation says, so that costs add as for releases of one photo
    (`compose`). No certificate says who is in a photo: it may be anybody, and counts for everybody.

    Nothing is promised together by heuristic releases, and where relations or kinds do not compose.
    Guarantees of a metric count as pure, with ε × diameter.
    """
    parts = []
    for one in files:
        each = one.guarantee
        if each is None or not each.formal or (each.kind == "metric" and each.diameter is None):
            lacks = "no formal guarantee, or a metric one without a diameter"
            problem = f"{escape_text(one.name)} has {lacks}, and so no total with others"
            raise BudgetRefused(problem, hint="leave it out, or release the photo by another method")
        bare = replace(each, scope=Scope(""))
        if each.kind == "metric":
            epsilon = (each.epsilon or Fraction(0)) * (each.diameter or 0)
            bare = Guarantee(kind="pure", epsilon=epsilon, relation=bare.relation, scope=bare.scope)
        parts.append(bare)
    try:
        return compose(parts)
    except UnsupportedRelation as error:
        raise BudgetRefused(f"the releases have no total: {error.message}", hint=ALONE) from error


NAMESPACE: Final = "urn:dpveil:card:"
"""The namespace of dpveil's terms. It is a name and no address: nothing has to be fetched to read a card."""
CR: Final = (
    *("arrayShape", "citeAs", "column", "conformsTo", "containedIn", "equivalentProperty", "extract"),
    *("field", "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset"),
    *("jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
    *("replace", "samplingRate", "separator", "source", "subField", "transform"),
)
"""Terms of Croissant that a context names."""


CONTEXT: Final[dict[str, Json]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in CR},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "dpveil": NAMESPACE,
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
"""The context of JSON-LD: what the names in a card stand for."""


CROISSANT: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
"""What a card conforms to."""
MEDIA: Final = {name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")}
"""Media types by format."""
SAME: Final = (
    "The total holds for what every release of a photo covers: two releases of one photo with"
    " different regions may show, together, all of it."
)
OTHERS: Final = "Other releases of the same people add to this, wherever they are."
ASSURED: Final = (
    "Guarantees were computed again from certificates; unsigned ones show inconsistency, not forgery."
)
UNSIGNED: Final = "The certificate of a set is not signed."
TO_FILL: Final = (
    *("license", "url", "creator", "datePublished"),
    *("rai:dataCollection", "rai:dataUseCases", "rai:dataBiases", "rai:dataSocialImpact"),
)
"""Fields that Croissant or its RAI vocabulary asks for, and that no certificate knows."""


def _field(name: str, kind: str, part: str) -> Json:
    source: Json = {"fileSet": {"@id": "images"}, "extract": {"fileProperty": part}}
    return {"@type": "cr:Field", "@id": f"pictures/{name}", "name": name, "dataType": kind, "source": source}


RECORDS: Final[Json] = {
    "@type": "cr:RecordSet",
    "@id": "pictures",
    "name": "pictures",
    "key": {"@id": "pictures/path"},
    "field": [_field("path", "sc:Text", "fullpath"), _field("image", "sc:ImageObject", "content")],
}
"""The records that a reader makes of the pictures: the name of a file, and its picture."""


def card(
    about: Mapping[str, str],
    files: Sequence[Listed],
    total: Guarantee,
    before: str = "",
    made: SetCertificate | None = None,
) -> dict[str, Json]:
    """Return the card of a data set; its files lie at `before` and their names, seen from the card.

    `about` is what only the publisher knows: its "name", and "license", "url", "creator" and "published",
    which may be empty. `total` is what all files promise together, and so each person, who may be in all of
    them. `made` is the certificate of a synthetic set. Numbers are rounded up to 15 digits. Raises
    `BudgetRefused` for numbers beyond all floats.
    """
    images = [one for one in files if one.picture]
    creator: Json = {"@type": "sc:Organization", "name": about["creator"]} if about.get("creator") else ""
    given = {"license": about.get("license"), "url": about.get("url"), "creator": creator}
    given["datePublished"] = about.get("published")
    used = [str(one.certificate.method) for one in images if one.certificate is not None]
    methods = [f"{count_noun(used.count(name), 'photo')} by {name}." for name in sorted(set(used))]
    many = count_noun(len(images), "photo")
    what = f"{many} with regions replaced by {this_tool()}; per person at most {total}."
    limits: tuple[str, ...] = (SAME, OTHERS, ASSURED)
    each = "two collections in which each photo of one person may differ: "
    clear = ["What a photo shows outside of its regions is in the clear: see dpveil:inTheClear of each."]
    terms: dict[str, Json] = {}
    if made is not None:
        methods = [f"All pictures were drawn by {METHOD}, from noisy votes of people's photos."]
        what = f"{count_noun(len(images), 'picture')} of nobody, made by {METHOD}: {made.plan.guarantee}."
        limits, each = (*made.warnings, OTHERS, UNSIGNED), ""
        clear, terms = [], _generation_terms(METHOD, made.plan.parameters(), made.tool)
    neighbours = f"Neighbours of {total}: {each}{total.relation.in_words()}."
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CROISSANT),
        "name": about["name"],
        "description": what,
        **{name: value for name, value in given.items() if value},
        "rai:dataPreprocessingProtocol": [*methods],
        "rai:personalSensitiveInformation": [
            f"Promised per person at most {total}.",
            f"{neighbours} Its strength is {strength(total)}.",
            *clear,
        ],
        "rai:dataLimitations": [*limits],
        "dpveil:perPerson": [_promise(total)],
        **terms,
        "distribution": [
            *(_file(number, one, before) for number, one in enumerate(files, 1)),
            _set(images, before, digits=made is not None),
        ],
        "recordSet": [RECORDS],
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
