"""What schemathesis is told of the service beyond its description: photos, settings that fit, where ids lead.

Imported by schemathesis in an environment of its own, which has nothing of dpveil: see `fuzz_openapi.py`.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Any

import schemathesis
from hypothesis import strategies as st

SUBJECT = os.environ.get("DPVEIL_FUZZ_SUBJECT")
USUAL = {"method": "dp-pix", "epsilon": 1, "block": 8, "neighbourhood": 16, "regions": "whole"}
LEADS = ("found", "image", "certificate", "job", "delete_releases", "delete_jobs")
"""Names of the addresses that take the id of a release or a job."""


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    rows = b"".join(
        b"\0" + bytes((x * y + c) % 256 for x in range(width) for c in range(3)) for y in range(height)
    )
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PHOTOS = [png(32, 24), png(1, 1), png(64, 16)]
schemathesis.openapi.format(
    "binary", st.one_of(st.sampled_from(PHOTOS), st.sampled_from(PHOTOS), st.binary())
)


@schemathesis.hook
def before_load_schema(ctx: Any, raw_schema: dict[str, Any]) -> None:
    """Say that the ids of answers lead to releases and jobs."""
    links = {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in LEADS}
    for status in ("201", "202"):
        raw_schema["paths"]["/v1/releases"]["post"]["responses"][status]["links"] = links


@schemathesis.hook
def map_body(ctx: Any, body: Any) -> Any:
    """Send settings that fit with two bodies of three, each the same every time."""
    if isinstance(body, dict) and isinstance(body.get("settings"), dict):
        chance = hashlib.sha256(repr(body).encode("utf-8", "replace")).digest()[0] % 3
        if chance:
            body["settings"] = USUAL if chance == 1 else {**USUAL, **body["settings"]}
        if SUBJECT is not None:
            body["settings"] = {"subject": SUBJECT, **body["settings"]}
    return body
