"""What OpenAPI says of /v1/explain: its query, its answer, and an example of both."""

from __future__ import annotations

from typing import Any, Final

from dpveil.release.words import CHANNELS

TRY: Final = "/v1/explain?method=dp-pix&epsilon=1&block=16&neighbourhood=256&size=128x128"
"""A request with the examples of `QUERY`; hints name it."""
QUERY: Final[list[dict[str, Any]]] = [
    {"name": name, "in": "query", "schema": {"type": kind}, "description": words}
    | ({} if value is None else {"example": value})
    for name, kind, words, value in (
        (
            "method",
            "string",
            "A name of /v1/methods, which lists the parameters of each: all of them may be in the query, and"
            " those below are frequent. Without one it is attributes.",
            "dp-pix",
        ),
        (
            "size",
            "string",
            "Width and height of the region in pixels.",
            "128x128",
        ),
        ("channels", "integer", "1 for grey, 3 for colour, which is usual.", 3),
        ("epsilon", "string", "ε of each region: a decimal, taken as it is written.", "1"),
        ("delta", "string", "δ: with it (ε, δ) is the target, and the noise the smallest for it.", None),
        ("rho", "string", "ρ in the place of ε, for the methods with Gaussian noise.", None),
        ("block", "integer", "Edge of a cell of equal grey in pixels.", 16),
        ("neighbourhood", "integer", "m: in how many pixels two photos may differ; all if left out.", 256),
        (
            "attributes",
            "string",
            "What attributes keeps of a face, such as gender=1; none if left out.",
            None,
        ),
    )
]
IN_THE_CLEAR: Final = ["position and size of the region", CHANNELS, "everything outside the region"]
EXAMPLE: Final[dict[str, Any]] = {
    "method": "dp-pix",
    "guarantee": {
        "kind": "pure",
        "relation": {"name": "m-pixels", "m": 256},
        "epsilon": 1,
        "scope": {
            "covers": "region: 128×128 pixels at 0,0, 3 channels",
            "in_the_clear": IN_THE_CLEAR,
        },
    },
    "noise_scale": 765.0,
    "strength": "strong",
    "sentence": "Strong: of two photos that differ in at most 256 pixels, equally likely before, nobody names"
    " the true one with more than 73.11 %. The region has 16,384 pixels: about all of them together the"
    " promise is practically none (epsilon 64).",
    "in_the_clear": IN_THE_CLEAR,
}
"""A part of the answer to `TRY`."""
EXPLANATION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["method", "parameters", "guarantee", "strength", "sentence"],
    "properties": {
        "method": {"type": "string"},
        "parameters": {"type": "object", "description": "All parameters, with those that were left out."},
        "guarantee": {"type": "object", "description": "As in a certificate."},
        "noise_scale": {"type": ["number", "null"], "description": "In grey levels, where noise is added."},
        "odds": {"type": ["number", "null"], "description": "e^ε."},
        "success_bound": {
            "type": "object",
            "description": "By the number of equally likely candidates: how often the true one is named.",
        },
        "strength": {
            "type": ["string", "null"],
            "description": "strong, moderate, weak or practically none.",
        },
        "sentence": {"type": "string", "description": "What it means, in words."},
        "in_the_clear": {"type": "array", "items": {"type": "string"}},
    },
    "example": EXAMPLE,
}
