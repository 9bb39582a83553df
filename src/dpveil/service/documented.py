"""The addresses as a table, with what OpenAPI says of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dpveil.service.amounts import COST, FITS, LEFT, PAID, REASON
from dpveil.service.explained import EXPLANATION, QUERY
from dpveil.service.limits import Limits
from dpveil.service.problems import CONCERNS, MEDIA_TYPE

ABOUT: Final = (
    "Provably private photos. Regions of a photo are replaced by a method with a stated guarantee; each"
    " release has a certificate, and a ledger pays for it before anything is drawn. Errors are problem+json."
)
IDEMPOTENCY: Final = (
    "A word of your own for this request: a retry with it gets the same release of each photo, and pays"
    " nothing for it."
)
PREFER: Final = "respond-async: answer with a job at once."
JSON: Final = "application/json"
EXAMPLE: Final = {
    "method": "dp-pix",
    "epsilon": 20,
    "block": 16,
    "neighbourhood": 256,
    "regions": ["40,52,112,112"],
}
SETTINGS: Final = {
    "type": "object",
    "description": "A method (default: every face becomes one of nobody), its parameters, regions.",
    "properties": {
        "method": {"type": "string", "description": "A name of /v1/methods."},
        "regions": {
            "description": "whole, faces, text, plates, faces+text, a box x,y,w,h in pixels, object:x,y,w,h"
            " for no face, or a list."
        },
        "if_none": {"enum": ["whole", "copy", "others", "others+whole", "others+copy"]},
        "at_least": {"enum": ["weak", "moderate", "strong"]},
        "post_processing": {"type": "array", "items": {"type": "string"}},
        "format": {"enum": ["png", "jpeg", "webp", "tiff", "bmp"]},
        "trust_source": {"enum": ["lossless"]},
        "subject": {"type": "string", "description": "Whose budget pays, such as album-7."},
    },
    "additionalProperties": True,
    "example": EXAMPLE,
}
SENT: Final = {
    "type": "array",
    "items": {"type": "string", "format": "binary"},
    "minItems": 1,
    "maxItems": Limits().photos,
    "description": "A part for each photo; all have the same settings, and each pays for itself.",
}
UPLOAD: Final = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["photo"],
                "properties": {"photo": SENT, "settings": SETTINGS},
            },
            "encoding": {"settings": {"contentType": JSON}},
            "examples": {
                "one": {"summary": "One photo", "value": {"photo": ["…"], "settings": EXAMPLE}},
                "several": {
                    "summary": "Two photos with the same settings: the answer has an entry for each",
                    "value": {"photo": ["…", "…"], "settings": EXAMPLE},
                },
            },
        }
    },
}
SECURITY: Final = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "What dpveil api-key new printed; not needed where the service has no keys.",
    }
}
NUMBER: Final = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string", "example": "urn:dpveil:error:InvalidParameter"},
        "title": {"type": "string", "description": "What is wrong."},
        "status": {"type": "integer"},
        "hint": {"type": "string", "description": "How to fix it."},
        "about": {"enum": sorted(set(CONCERNS.values())), "description": "What has to be changed for that."},
        "retry_after": {"type": "integer", "description": "Seconds to wait, where waiting helps."},
        "photos": {
            "type": "array",
            "description": "Where all of several are refused.",
        },
    },
}
RELEASE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "certificate", "image_url"],
    "properties": {
        "id": {"type": "string"},
        "certificate": {"type": "object", "description": "As in the file beside a release."},
        "image_url": {"type": "string"},
        "certificate_url": {"type": "string"},
        "expires": {"type": "integer", "description": "Unix seconds."},
        "notes": {"type": "array", "items": {"type": "string"}},
    },
}
JOB: Final = {
    "type": "object",
    "required": ["id", "status"],
    "properties": {
        "id": {"type": "string"},
        "status": {"enum": ["working", "done", "failed"]},
        "job_url": {"type": "string"},
        "release_url": {"type": ["string", "null"]},
        "problem": {"anyOf": [PROBLEM, {"type": "null"}]},
    },
}
OBJECT: Final = {"type": "object"}
PAYING: Final = {**RELEASE, "properties": {**RELEASE["properties"], "paid": PAID, "left": LEFT}}
"""A release as it is told to the request that asks for it."""
PLANNED: Final = {
    "type": "object",
    "properties": {
        "regions": {"type": "array", "description": "What is replaced, each with its guarantee."},
        "total": {"type": ["object", "null"], "description": "The guarantee of the whole release."},
        "cost": COST,
        "left": LEFT,
        "fits": FITS,
        "reason": REASON,
    },
}


def entries(**kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the answer to several photos, which are of these kinds or problems."""
    return {
        "type": "object",
        "required": ["photos"],
        "properties": {
            "photos": {
                "type": "array",
                "description": "An entry for each photo, in their order.",
                "items": {
                    "type": "object",
                    "required": ["status"],
                    "properties": {
                        "status": {
                            "type": "integer",
                            "description": "As if for this photo alone.",
                        },
                        **kinds,
                        "problem": PROBLEM,
                        "replayed": {"type": "boolean", "description": "An earlier request began it."},
                    },
                },
            }
        },
    }


def either(one: Mapping[str, Any], several: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the answer to one photo, or to several."""
    return {"oneOf": [one, several]}


RELEASES: Final = entries(release=PAYING, job=JOB)
PLAN: Final = {"anyOf": [PLANNED, entries(plan=PLANNED)]}
OPEN: Final = (400, 403, 421, 500)
"""What any request may be refused with."""
ASKING: Final = (*OPEN, 401, 429, 503)
"""What requests may be refused with that need a key, where there are keys."""
SENDING: Final = (*ASKING, 408, 413, 415, 422)
FINDING: Final = (*ASKING, 404)


@dataclass(frozen=True)
class Row:
    """One address: the method of `Addresses` that answers, answers by status, and the errors it may have.

    Answers with a status come in `also` another form, which a client asks for by Accept.
    """

    method: str
    path: str
    name: str
    answers: Mapping[int, tuple[str, str, Mapping[str, Any]]]
    errors: tuple[int, ...] = ()
    body: Mapping[str, Any] | None = None
    parameters: list[dict[str, Any]] = field(default_factory=list)
    also: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def responses(self) -> dict[int | str, dict[str, Any]]:
        """Return what OpenAPI says of the answers."""
        told: dict[int | str, dict[str, Any]] = {
            status: {"description": words, **({"content": content} if content else {})}
            for status, (words, media, schema) in self.answers.items()
            for content in [{**({media: {"schema": schema}} if media else {}), **self.also.get(status, {})}]
        }
        refused = {"content": {MEDIA_TYPE: {"schema": PROBLEM}}}
        return told | {status: {"description": "A problem", **refused} for status in self.errors}

    def extra(self) -> dict[str, Any]:
        """Return what OpenAPI says of the request."""
        numbered = [NUMBER] if "{id}" in self.path else []
        parameters = {"parameters": [*numbered, *self.parameters]} if numbered or self.parameters else {}
        security: dict[str, Any] = {"security": [{"key": []}, {}]} if 401 in self.errors else {}
        return parameters | security | ({"requestBody": dict(self.body)} if self.body else {})


PHOTO: Final = ("The picture.", "image/*", {"type": "string", "format": "binary"})
ARCHIVE: Final = {
    "application/zip": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "With Accept: application/zip, if all were released: 1.png,"
            " 1.png.certificate.json, and so on in their order.",
        }
    }
}
ADDRESSES: Final = (
    Row(
        "POST",
        "/v1/releases",
        "release",
        {
            201: ("The release of each photo.", JSON, either(PAYING, RELEASES)),
            202: ("A job makes a photo's release.", JSON, either(JOB, RELEASES)),
            200: ("Of several photos some were released and the others refused.", JSON, RELEASES),
        },
        (*SENDING, 409, 410),
        UPLOAD,
        also={201: ARCHIVE},
    ),
    Row("GET", "/v1/releases/{id}", "found", {200: ("The release.", JSON, RELEASE)}, FINDING),
    Row("GET", "/v1/releases/{id}/image", "image", {200: PHOTO}, FINDING),
    Row("GET", "/v1/releases/{id}/certificate", "certificate", {200: ("The file.", JSON, OBJECT)}, FINDING),
    Row("DELETE", "/v1/releases/{id}", "delete", {204: ("It is forgotten.", "", {})}, (*FINDING, 409)),
    Row("GET", "/v1/jobs/{id}", "job", {200: ("The job.", JSON, JOB)}, FINDING),
    Row("DELETE", "/v1/jobs/{id}", "delete", {204: ("It is cancelled.", "", {})}, (*FINDING, 409)),
    Row("POST", "/v1/plan", "plan", {200: ("The plan of each photo.", JSON, PLAN)}, SENDING, UPLOAD),
    Row(
        "GET",
        "/v1/explain",
        "explain",
        {200: ("What it promises.", JSON, EXPLANATION)},
        (*ASKING, 422),
        parameters=QUERY,
    ),
    Row("GET", "/v1/methods", "methods", {200: ("The methods.", JSON, OBJECT)}, ASKING),
    Row("GET", "/healthz", "health", {200: ("It runs.", JSON, OBJECT)}, OPEN),
    Row("GET", "/readyz", "ready", {200: ("Ready.", JSON, OBJECT), 503: ("Not ready.", JSON, OBJECT)}, OPEN),
    Row("GET", "/metrics", "figures", {200: ("Figures.", "text/plain", {"type": "string"})}, ASKING),
)
"""Every address of the service."""
