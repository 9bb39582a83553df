"""What /openapi.json says of requests and answers.

Settings are checked by workers, which know the methods: these models describe, and check nothing.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from dpveil.service.problems import MEDIA_TYPE

Amount = float | str  # A number, or a fraction such as "1/3" where no decimal is exact
JSON: Final = "application/json"
EXAMPLE: Final[dict[str, Any]] = {
    "method": "dp-pix",
    "epsilon": 20,
    "block": 16,
    "neighbourhood": 256,
    "regions": ["40,52,112,112"],
}
TRY: Final = "/v1/explain?method=dp-pix&epsilon=1&block=16&neighbourhood=256&size=128x128"
"""A request with the examples of `QUERY`; hints name it."""


def _optional_field(description: str | None = None) -> Any:
    return Field(default_factory=dict, description=description)


class Settings(BaseModel):
    """A method (default: every face becomes a synthetic one), its parameters, regions."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"example": EXAMPLE})
    method: str = _optional_field("A name of /v1/methods.")
    regions: Any = _optional_field(
        "whole, faces, text, plates, codes, eyes, irises, faces+text, a box x,y,w,h in pixels,"
        " object:x,y,w,h for no face, or a list."
    )
    if_none: Literal["whole", "copy", "others", "others+whole", "others+copy"] = _optional_field()
    at_least: Literal["weak", "moderate", "strong"] = _optional_field()
    post_processing: list[str] = _optional_field()
    format: Literal["png", "jpeg", "webp", "tiff", "bmp"] = _optional_field("jpeg for a JPEG, else png.")
    trust_source: Literal["lossless"] = _optional_field()
    subject: str = _optional_field("Whose budget pays, such as album-7.")


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(examples=["urn:dpveil:error:InvalidParameter"])
    title: str = Field(description="What is wrong.")
    status: int
    hint: str = _optional_field("How to fix it.")
    about: Literal["photo", "settings"] = _optional_field("What has to be changed for that.")
    retry_after: int = _optional_field("Seconds to wait, where waiting helps.")


class Cost(BaseModel):
    """What a release is paid for."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"epsilon": 1, "delta": 0, "rho": 0, "relation": "any-image"}}
    )
    epsilon: Amount = Field(description="Σε of pure and approximate promises.")
    delta: Amount = Field(description="Σδ of approximate promises.")
    rho: Amount = Field(description="Σρ of zero-concentrated promises.")
    relation: str | None = Field(description="The neighbours that it is about.")


class Paid(Cost):
    """Where the service has a ledger: who paid for this release, and how much. A retry is told the same."""

    subject: str


class LimitLeft(BaseModel):
    """One limit, as dpveil ledger show --json states it."""

    model_config = ConfigDict(extra="allow")
    subject: str
    kind: Literal["pure", "approximate", "zcdp"]
    left: Amount = Field(description="The largest ε that fits, or ρ for kind zcdp.")


class Left(BaseModel):
    """Where the service has a ledger: what is left at the moment of this answer."""

    limits: list[LimitLeft] = Field(description="Every limit that the key may know, from the top.")
    complete: bool = Field(description="Whether these are all: else another budget may refuse.")


class Release(BaseModel):
    """A release that was made."""

    id: str
    certificate: dict[str, Any] = Field(description="As in the file beside a release.")
    image_url: str
    certificate_url: str
    expires: int = Field(description="Unix seconds.")
    notes: list[str] = Field(description="Warnings, and how the photo was read; a plan says what stays.")


class PaidRelease(Release):
    """A release as it is told to the request that asks for it."""

    paid: Paid = _optional_field()
    left: Left = _optional_field()


class Progress(BaseModel):
    """How much of a document or clip is done: pages, or frames of a stage."""

    done: int
    of: int


class Job(BaseModel):
    """What became of a request."""

    id: str
    status: Literal["working", "done", "failed"]
    job_url: str
    release_url: str | None
    problem: Problem | None
    progress: Progress = _optional_field("Of a document or clip that is being made.")


class Plan(BaseModel):
    """What a release would promise."""

    model_config = ConfigDict(extra="allow")
    regions: list[Any] = Field(description="What is replaced, each with its guarantee.")
    total: dict[str, Any] | None = Field(description="The guarantee of the whole release.")
    cost: Cost | None = _optional_field("What it would cost; null for what no budget can hold.")
    left: Left = _optional_field()
    fits: bool = _optional_field("Whether the limits in left have room for the cost now; paying decides.")
    reason: str = _optional_field("Why it does not fit, where fits is false.")


class Explanation(BaseModel):
    """What a method promises."""

    model_config = ConfigDict(extra="allow")
    method: str
    parameters: dict[str, Any]
    guarantee: dict[str, Any] = Field(description="As in a certificate.")
    strength: str | None = Field(description="strong, moderate, weak or practically none.")
    sentence: str = Field(description="What it means, in words.")


QUERY: Final[list[dict[str, Any]]] = [
    {"name": name, "in": "query", "schema": {"type": kind}, "description": words}
    | ({} if value is None else {"example": value})
    for name, kind, words, value in (
        ("method", "string", "A name of /v1/methods, which lists the parameters of each.", "dp-pix"),
        ("size", "string", "Width and height of the region in pixels.", "128x128"),
        ("channels", "integer", "1 for grey, 3 for colour.", 3),
        ("epsilon", "string", "ε of each region: a decimal, taken as it is written.", "1"),
        ("delta", "string", "δ: with it (ε, δ) is the target.", None),
        ("rho", "string", "ρ in the place of ε, for the methods with Gaussian noise.", None),
        ("block", "integer", "Edge of a cell of equal grey in pixels.", 16),
        ("neighbourhood", "integer", "In how many pixels two photos may differ; all if left out.", 256),
        ("attributes", "string", "What attributes keeps of a face, as gender=1.", None),
    )
]
BINARY: Final = {"type": "string", "format": "binary"}
SENT: Final = {
    "photo": BINARY | {"description": "A photo; without a ledger also a PDF or a clip."},
    "settings": Settings.model_json_schema(),
}
FORM: Final = {
    "schema": {"type": "object", "required": ["photo"], "properties": SENT},
    "encoding": {"settings": {"contentType": JSON}},
}
UPLOAD: Final = {"requestBody": {"required": True, "content": {"multipart/form-data": FORM}}}
IMAGE: Final = {kind: {"schema": BINARY} for kind in ("image/*", "application/pdf", "video/mp4")}
TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of refusals, those that any request may have among them."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    told = {"description": "A problem", "content": content}
    return {status: dict(told) for status in (400, 403, 421, 500, *statuses)}
