"""Cards as JSON-LD: Croissant 1.1 with its vocabulary for responsible AI, and terms of dpveil for promises.

Source: Croissant Format Specification 1.1 and Croissant RAI 1.0 (MLCommons 2024 to 2026; Akhtar et al. 2024).
"""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from dpveil.accounting.meaning import strength
from dpveil.cards.totals import Listed, Totals
from dpveil.core.envelope import this_tool
from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import Json
from dpveil.errors import BudgetRefused
from dpveil.release.saving import SUFFIX
from dpveil.synthesis.saving import METHOD, SetCertificate

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
        **({} if made is None else _drawn(METHOD, made.plan.parameters(), made.tool)),
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


def _drawn(mechanism: str, parameters: dict[str, Json], tool: str) -> dict[str, Json]:
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
        **_drawn(str(stated.method), dict(stated.parameters), stated.tool),
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
        return f"{counted(len(images), 'picture')} of nobody, made by {METHOD}: {made.plan.guarantee}."
    return f"{counted(len(images), 'photo')} with regions replaced by {this_tool()}; {_most(totals)}."


def _most(totals: Totals) -> str:
    """Return in words what no person's total exceeds."""
    return "per person at most " + ", or ".join(str(total) for total, _ in totals.most)


def _methods(images: Sequence[Listed], made: SetCertificate | None) -> list[Json]:
    """Return how the files were made, a sentence for each method."""
    if made is not None:
        return [f"All pictures were drawn by {METHOD}, from noisy votes of people's photos."]
    used = [str(one.certificate.method) for one in images if one.certificate is not None]
    return [f"{counted(used.count(name), 'photo')} by {name}." for name in sorted(set(used))]


def _protection(totals: Totals, made: SetCertificate | None) -> list[Json]:
    """Return what of people is protected, and how well."""
    words = [f"Promised {_most(totals)}."]
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
    bare = counted(len(totals.unnamed), "photo")
    have = f"{bare} {'has' if len(totals.unnamed) == 1 else 'have'}"
    return [SAME, TOLD, OTHERS, ASSURED, *([NO_PERSON.format(have) + "."] if totals.unnamed else [])]
