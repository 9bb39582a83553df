"""Requests of which not every part has to be found, and what certificates may say of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpveil
from dpveil.core.certificate import OTHERS
from dpveil.core.origin import Origin
from dpveil.core.region import Box, Region
from dpveil.errors import NoRegion
from dpveil.noise.bits import SeededBits
from dpveil.regions import Finder
from dpveil.regions.spec import IF_NONE, last_of, passes_over

PHOTO = (np.arange(40 * 30 * 3) % 251).astype(np.uint8).reshape(30, 40, 3)
NO_FACE = (
    "that no face was found: the guarantee compares photos with the same result; faces that were missed "
)
STAYS = "everything outside the region, with all text that was not found"


class Sees(Finder):
    """Finds one thing, or nothing."""

    description = ""

    def __init__(self, description: str, kind: str = "") -> None:
        self.description, self.thing = description, kind  # type: ignore[misc]

    def __call__(self, photo: Any) -> list[Region]:
        if not self.thing:
            raise NoRegion(f"nothing of {self.description} was found", hint="look")
        return [Region(Box(2, 3, 20, 10), origin=Origin(self.thing, self.description, number=1, found=True))]


FACES, TEXT, LINE = Sees("faces"), Sees("text"), Sees("text", "text")


def made(*regions: Any, if_none: str | None = OTHERS, **more: Any) -> Any:
    return dpveil.obfuscate(
        PHOTO, "dp-pix", regions=list(regions), if_none=if_none, epsilon=1, block=8, **more
    )


def test_what_one_finder_misses_is_passed_over_where_another_one_finds_something() -> None:
    release = made(FACES, LINE, at_least="strong", bits=SeededBits(3))
    stated = release.certificate
    assert (stated.missing, stated.if_none, stated.passed_over, stated.exposed) == (
        ("faces",),
        OTHERS,
        ("faces",),
        (),
    )
    for told in (stated.guarantees[0].scope.in_the_clear, stated.composition.scope.in_the_clear):
        assert [text.startswith(NO_FACE) for text in told].count(True) == 1
        assert STAYS in told
    assert not any("NOT FOUND" in text for text in stated.warnings)
    assert "no face was found: faces that were missed stay visible" in release.notes
    alone = made(LINE, if_none=None, bits=SeededBits(3))
    assert (release.image == alone.image).all()
    assert alone.certificate.composition.epsilon == stated.composition.epsilon
    assert made(FACES, LINE).certificate.publishable


def test_all_that_is_found_is_released_as_ever() -> None:
    ever, allowed = (made(LINE, "1,1,9,9", if_none=way, bits=SeededBits(3)) for way in (None, OTHERS))
    assert allowed.certificate == ever.certificate
    assert "if_none" not in allowed.certificate.to_json()


def test_where_nothing_is_found_the_photo_is_refused_whole_or_copied() -> None:
    for asked in (None, OTHERS):
        with pytest.raises(NoRegion, match="nothing of faces was found") as refusal:
            made(FACES, TEXT, if_none=asked)
        assert ("nothing of text was found" in refusal.value.message) == (asked == OTHERS)
    with pytest.raises(NoRegion, match="nothing of faces was found: look"):
        made(FACES)
    whole, copy = (made(FACES, TEXT, if_none=f"{OTHERS}+{last}").certificate for last in ("whole", "copy"))
    assert (whole.regions[0].origin.fallback, whole.missing, whole.if_none) == (True, (), None)
    assert (copy.guarantees, copy.missing, copy.publishable, copy.if_none) == (
        (),
        ("faces", "text"),
        False,
        None,
    )


def test_what_is_asked_has_one_meaning_each() -> None:
    asked = {way: (passes_over(way), last_of(way)) for way in (None, *IF_NONE)}
    assert asked == {
        None: (False, None),
        "whole": (False, "whole"),
        "copy": (False, "copy"),
        "others": (True, None),
        "others+whole": (True, "whole"),
        "others+copy": (True, "copy"),
    }


Edit = Callable[[dict[str, Any]], None]


def rewrite(beside: Path, data: dict[str, Any]) -> None:
    """Write a certificate as a careful forger does: canonical, with a fitting checksum."""

    def text(members: dict[str, Any]) -> str:
        return json.dumps(members, sort_keys=True, indent=2, ensure_ascii=False) + "\n"

    rest = {key: value for key, value in data.items() if key != "checksum"}
    sealed = rest | {"checksum": hashlib.sha256(text(rest).encode()).hexdigest()}
    beside.write_text(text(sealed), encoding="utf-8")


def of_a_region(data: dict[str, Any]) -> None:
    data["missing"] = ["text"]
    data["request"] = ["text"]


PASSED, COPIED, FOUND, BARE, WHOLE = range(5)
LIES: dict[str, tuple[int, Edit, str]] = {
    "the request does not say so": (PASSED, lambda d: d.pop("if_none"), "edited"),
    "another way": (PASSED, lambda d: d.update(if_none="copy"), "malformed"),
    "a way that no certificate states": (PASSED, lambda d: d.update(if_none="others+whole"), "malformed"),
    "no way": (PASSED, lambda d: d.update(if_none=None), "malformed"),
    "a way that is no text": (PASSED, lambda d: d.update(if_none=["others"]), "malformed"),
    "nothing is missing": (PASSED, lambda d: d.update(missing=[]), "nothing is missing"),
    "what nobody asked for": (PASSED, lambda d: d.update(missing=["faces", "hats"]), "was not asked for"),
    "what has a region": (PASSED, of_a_region, "is missing, and a region is of it"),
    "a box was not found": (
        PASSED,
        lambda d: d.update(missing=["1,1,2,2"], request=["1,1,2,2", "text"]),
        "1,1,2,2 is missing",
    ),
    "all was found": (FOUND, lambda d: d.update(if_none=OTHERS), "nothing is missing"),
    "a copy": (BARE, lambda d: d.update(if_none=OTHERS), "nothing else is replaced"),
    "the whole photo": (WHOLE, lambda d: d.update(if_none=OTHERS, missing=["faces"]), "nothing else is"),
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("honest")
    releases = (
        made(FACES, LINE),
        made(FACES, LINE, if_none="copy"),
        made(LINE),
        made(FACES, if_none="copy"),
        made(FACES, TEXT, if_none="others+whole"),
    )
    return [each.save(folder / f"{n}.png")[0] for n, each in enumerate(releases)]


@pytest.mark.parametrize("name", LIES)
def test_a_certificate_that_contradicts_itself_is_refused(
    honest: list[Path], tmp_path: Path, name: str
) -> None:
    which, edit, told = LIES[name]
    image = honest[which]
    beside = image.with_name(f"{image.name}.certificate.json")
    forged = tmp_path / image.name
    forged.write_bytes(image.read_bytes())
    data = json.loads(beside.read_text(encoding="utf-8"))
    rewrite(tmp_path / beside.name, data)
    assert dpveil.verify(forged).status in ("consistent", "unprotected"), "the forger writes as dpveil does"
    edit(data)
    rewrite(tmp_path / beside.name, data)
    found = dpveil.verify(forged)
    assert found.status == "inconsistent"
    assert any(told in problem for problem in found.problems), found.problems
