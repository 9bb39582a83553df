"""The terms of a card: those of Croissant, and dpveil's own."""

from __future__ import annotations

from typing import Final

from dpveil.core.numbers import Json

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
TERMS: Final = {
    "kind": "pure, approximate, zcdp or metric",
    "epsilon": "ε; for metric, of a unit of the distance",
    "delta": "δ",
    "rho": "ρ",
    "metric": "the distance, in words",
    "diameter": "the largest distance",
    "relation": "the name of the neighbouring relation",
    "pixels": "m of the relation m-pixels",
    "neighbours": "what the relation means, in words",
    "strength": "strong, moderate, weak or practically none",
    "covers": "what is covered of a photo",
    "inTheClear": "what stays in the clear",
    "mechanism": "the method that drew",
    "parameters": "its parameters",
    "postProcessing": "steps after the draw",
    "tool": "the version of dpveil that drew",
    "certificate": "the file that verifies it",
    "guarantee": "the promise about one file",
    "perPerson": "what no person's total exceeds",
    "together": "the sum over all files",
    "people": "how many people it is about, where they are named",
    "withoutPerson": "files of nobody known, which count for everybody",
}
"""Terms of dpveil, with their meaning."""


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
