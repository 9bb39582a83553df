"""What the server checks of a release before anybody sees it: a worker may be taken over."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from service_client import photo, release

from dpveil.core.certificate import parse_certificate
from dpveil.service.jobs import MOST_NOTES, checked
from dpveil.service.problems import WorkerEnded


def told(image: bytes, stated: str, answered: Any) -> tuple[dict[str, Any], bytes, dict[str, Any], int]:
    """Return a worker's answer with another image, a certificate that matches, what was paid, and room."""
    made = release()
    certificate = parse_certificate(made["certificate"])
    output = replace(certificate.output, sha256=hashlib.sha256(image).hexdigest(), format=stated)
    answer = {"certificate": replace(certificate, output=output).to_text(), "format": answered, "notes": []}
    return answer, image, made["total"], len(image) + len(answer["certificate"].encode()) + len("[]")


def test_a_release_passes_with_its_own_format() -> None:
    image = base64.b64decode(release()["image"])
    assert checked(*told(image, "png", "png"))["sha256"] == hashlib.sha256(image).hexdigest()
    for kind in ("jpeg", "webp", "tiff", "bmp"):
        assert checked(*told(photo(kind=kind), kind, kind))["format"] == kind


@pytest.mark.parametrize(
    ("image", "stated", "answered"),
    [
        (photo(), "png", "jpeg"),
        (photo(), "jpeg", "jpeg"),
        (photo(), "jpeg", "png"),
        (photo(), "png", "../../x"),
        (photo(), "png", ["png"]),
        (photo(), "png", None),
        (photo(kind="GIF"), "gif", "gif"),
        (b"<svg/>", "svg", "svg"),
        (b"<svg/>", "png", "png"),
        (b"\0\0\0\x1cftypavif" + bytes(16), "avif", "avif"),
        (b"\0\0\0\x1cftyp", "png", "png"),
        (b"", "png", "png"),
    ],
)
def test_other_files_do_not(image: bytes, stated: str, answered: Any) -> None:
    with pytest.raises(WorkerEnded):
        checked(*told(image, stated, answered))


def test_what_is_longer_than_the_worker_said_does_not_pass() -> None:
    *answer, room = told(photo(), "png", "png")
    with pytest.raises(WorkerEnded):
        checked(*answer, room - 1)


def test_notes_are_short_and_within_the_room() -> None:
    answer, *rest, room = told(photo(), "png", "png")
    answer["notes"] = ["n" * (MOST_NOTES - len('[""]'))]
    assert checked(answer, *rest, room + MOST_NOTES)["notes"] == json.dumps(answer["notes"])
    with pytest.raises(WorkerEnded):
        checked(answer, *rest, room + 1000)
    answer["notes"] = ["n" * MOST_NOTES]
    with pytest.raises(WorkerEnded):
        checked(answer, *rest, room + 10 * MOST_NOTES)


def test_nothing_else_of_an_answer_is_kept() -> None:
    answer, *rest = told(photo(), "png", "png")
    assert set(checked({**answer, "more": "x"}, *rest)) == {"certificate", "format", "sha256", "notes"}
