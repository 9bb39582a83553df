"""Every edit of an image or of a certificate is found; forgery of both is not, and verify says so."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.catalogue import build
from dpveil.core.certificate import Certificate, Output
from dpveil.core.origin import BOX, FACE, MASK, WHOLE, Origin
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region, RegionRecord
from dpveil.core.registry import METHODS
from dpveil.errors import NoRegion, UnknownName
from dpveil.faces import Attributes
from dpveil.faces.geometry import place
from dpveil.faces.geometry.cell import PITCHES, RATIO, Cell
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.regions import Finder
from dpveil.regions.tiling import grow
from dpveil.release import verification
from dpveil.release.origins import stays
from dpveil.release.quote import Quote
from dpveil.release.verification import place_problems, request_problems


class Nobody(Finder):
    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


def photo():
    return (np.arange(40 * 30 * 3) % 251).astype(np.uint8).reshape(30, 40, 3)


def save(folder: Path, **changes):
    mask = np.zeros((30, 40), bool)
    mask[3:9, 4:20] = True
    call = {"regions": ["2,3,20,10", mask], "epsilon": 2, "block": 8, "neighbourhood": 16} | changes
    release = dpveil.obfuscate(photo(), "dp-pix", **call)
    return release.save(folder / "a.png")


@pytest.fixture
def saved(tmp_path):
    return save(tmp_path)


def rewrite(beside: Path, data) -> None:
    """Write `data` in canonical form and with a fitting checksum, as a careful forger would."""
    rest = {key: value for key, value in data.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    data = rest | {"checksum": hashlib.sha256(text.encode()).hexdigest()}
    text = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    beside.write_text(text, encoding="utf-8")


def leaves(data, path=()):
    """Every place in a JSON document, containers too."""
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


def changed(data, path, value):
    """`data` with another value (or, for `...`, nothing) at `path`."""
    data = deepcopy(data)
    target = data
    for key in path[:-1]:
        target = target[key]
    if value is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return data


def test_a_release_is_consistent_and_publishable(saved):
    result = dpveil.verify(saved[0])
    assert (result.status, result.problems, result.publishable) == ("consistent", (), True)
    assert dpveil.verify(str(saved[1])) == result


def test_a_seeded_release_is_consistent_but_not_publishable(tmp_path):
    result = dpveil.verify(save(tmp_path, bits=dpveil.SeededBits(1))[0])
    assert (result.status, result.publishable) == ("consistent", False)


def test_a_copy_is_unprotected(tmp_path):
    image, beside = save(tmp_path, regions=Nobody(), if_none="copy")
    result = dpveil.verify(image)
    assert (result.status, result.problems, result.publishable) == ("unprotected", (), False)
    data = json.loads(beside.read_text(encoding="utf-8"))
    for key, value in [
        ("warnings", []),
        ("method", "dp-pix"),
        ("bits", "secure"),
        ("parameters", {"epsilon": 1}),
        ("accountant", "sum"),
        ("publishable", True),
        ("schema", "other"),
    ]:
        rewrite(beside, data | {key: value})
        assert dpveil.verify(image).status == "inconsistent", key


def test_what_was_not_found_beside_a_box_is_missing(tmp_path):
    class NoFace(Nobody):
        description = "faces"

    image, beside = save(tmp_path, regions=["2,3,20,10", NoFace()], if_none="copy")
    assert dpveil.verify(image).status == "consistent"
    data = json.loads(beside.read_text(encoding="utf-8"))
    rewrite(beside, data | {"missing": [], "publishable": True})
    assert "faces were requested" in " ".join(dpveil.verify(image).problems)


KINDS = ("x", -1, 0, 3, 2**40, 0.5, None, True, [], {}, ["a"], {"a": 1}, "1e999999999", ...)


def test_no_edit_with_a_fitting_checksum_goes_unnoticed_where_a_number_depends_on_it(saved):
    image, beside = saved
    data = json.loads(beside.read_text(encoding="utf-8"))
    free = [("tool",), ("checksum",), ("parameters", "block")]
    for path in leaves(data):
        if path in free or path[:2] == ("regions", 1) or path[0] == "request":
            continue  # nothing can be recomputed for these, nor for a mask, which has a hash
        for value in KINDS:
            edited = changed(data, path, value)
            if edited != data:
                rewrite(beside, edited)
                assert dpveil.verify(image).status == "inconsistent", (path, value)


@pytest.mark.parametrize(("bits", "status"), [("seeded", "consistent"), ("homemade", "consistent")])
def test_other_bits_are_not_publishable(saved, bits, status):
    image, beside = saved
    data = json.loads(beside.read_text(encoding="utf-8"))
    rewrite(beside, data | {"bits": bits})
    assert dpveil.verify(image).status == "inconsistent"
    rewrite(beside, data | {"bits": bits, "publishable": False})
    found = dpveil.verify(image)
    assert (found.status, found.publishable) == (status, False)


def test_a_certificate_holds_no_sentence_and_verify_makes_them(saved):
    image, beside = saved
    text = beside.read_text(encoding="utf-8")
    stated = dpveil.verify(image).certificate
    assert stated.warnings
    assert stated.composition.scope.in_the_clear
    for sentence in (*stated.warnings, *stated.composition.scope.in_the_clear):
        assert sentence not in text


def test_an_edited_image_is_found(saved):
    image, _ = saved
    contents = image.read_bytes()
    flipped = contents[:50] + bytes([contents[50] ^ 1]) + contents[51:]
    for edited in (contents + b"!", contents[:-1], b"", flipped):
        image.write_bytes(edited)
        [problem] = dpveil.verify(image).problems
        assert "SHA-256" in problem


def with_contents(saved, contents: bytes, **output):
    image, beside = saved
    image.write_bytes(contents)
    data = json.loads(beside.read_text(encoding="utf-8"))
    data["output"] |= {"sha256": hashlib.sha256(contents).hexdigest(), **output}
    rewrite(beside, data)
    return " ".join(dpveil.verify(image).problems)


def test_another_image_under_a_fitting_hash_must_still_have_format_and_size(saved, tmp_path):
    other = tmp_path / "other.bmp"
    Image.fromarray(photo()).save(other)
    assert "not a png file" in with_contents(saved, other.read_bytes())
    saved = [path.rename(tmp_path / path.name.replace("png", "bmp")) for path in saved]
    assert with_contents(saved, other.read_bytes(), format="bmp") == ""
    Image.fromarray(photo()[:29]).save(other)
    assert "40×29×3" in with_contents(saved, other.read_bytes(), format="bmp")
    Image.fromarray(photo()[:, :, 0]).save(other)
    assert "40×30×1" in with_contents(saved, other.read_bytes(), format="bmp")
    assert "more than a picture" in with_contents(saved, b"BM nothing", format="bmp")


def test_regions_outside_the_photo_are_found(saved, tmp_path):
    small = tmp_path / "small.png"
    Image.fromarray(photo()[:12]).save(small)
    assert "outside the photo" in with_contents(saved, small.read_bytes(), height=12)


@pytest.mark.parametrize(
    ("seed", "least", "why"),
    [
        (None, "moderate", ""),
        (None, "strong", "it promises 2-DP, m-pixels (m = 4), which is moderate, and at least strong was"),
        (1, "weak", "it is not publishable (seeded bits)"),
    ],
)
def test_what_promises_less_than_was_asked_for_is_refused(tmp_path, seed, least, why):
    bits = None if seed is None else dpveil.SeededBits(seed)
    grey = np.zeros((8, 8), np.uint8)
    made = dpveil.obfuscate(grey, "dp-pix", epsilon=2, block=4, neighbourhood=4, bits=bits)
    path, _ = made.save(tmp_path / "a.png")
    found = dpveil.verify(path, at_least=least)
    assert (found.status, found.refused.startswith(why)) == ("consistent", True)
    assert found.publishable == (not found.refused) == (not why)
    assert why in repr(found)
    for name in ("iron", []):
        with pytest.raises(UnknownName, match="unknown strength"):
            dpveil.verify(path, at_least=name)


def test_what_cannot_be_relied_on_is_refused_whatever_was_asked_for(tmp_path):
    path, beside = dpveil.obfuscate(np.zeros((8, 8), np.uint8), "fill").save(tmp_path / "a.png")
    assert dpveil.verify(path, at_least="strong").refused == ""
    beside.write_text("{}")
    assert "schema" in dpveil.verify(path, at_least="weak").refused
    beside.unlink()
    assert "certificate" in dpveil.verify(path, at_least="weak").refused
    copy = dpveil.obfuscate(np.zeros((200, 200), np.uint8), "fill", regions="faces", if_none="copy")
    path, _ = copy.save(tmp_path / "b.png")
    assert dpveil.verify(path, at_least="weak").refused == "it is an unprotected copy"


def test_no_certificate_claims_a_cell_that_is_not_checked():
    """Nor of a method that rounds nothing: its sentences would say "rounded"."""
    cell = Origin("face", "faces", number=1, found=True, cell=(19, 0, 60, 60, 0))
    forged = RegionRecord(Box(10, 10, 50, 60), cell)
    image = Output("0" * 64, "png", 400, 300, 3)
    for name, given in (("attributes", {"attributes": "none"}), ("fill", {})):
        method = METHODS[name](**given)
        quote = Quote(method, (forged,), width=400, height=300, channels=3)
        stated = Certificate(
            method=name, parameters=method.parameters(), request=("faces",), guarantees=quote.guarantees,
            regions=(forged,), composition=quote.total, strength=quote.strength,
            accountant=quote.accountant, bits="secure", output=image,
        )  # fmt: skip
        found = [*verification._promise_problems(stated, image)]
        assert any("cell of the grid" in problem for problem in found), found


def problems(certificate):
    asked = [*request_problems(certificate, certificate.output)]
    return [*asked, *place_problems(certificate, certificate.output, Attributes(attributes="none"))]


# Certificates that contradict themselves: each says of its regions what no release can have.


WIDTH, HEIGHT = 320, 240
JPEG = Grid(16, 16)
FACES, KEPT = "faces margin=0", "faces margin=0 except=2"
OWN = Box(110, 60, 70, 90)
MASKED = "mask sha256:" + 64 * "a"


def face(
    number: int,
    finder: str,
    *,
    grid: Grid | None = None,
    protect: str = "head",
    roll: int = 3,
    yaw: int | None = 1,
) -> RegionRecord:
    """The record of a face that landmarks placed, or without yaw and roll its box alone."""
    scale, width = round(math.log(87) / math.log(RATIO[0] / RATIO[1])), PITCHES
    cell = Cell(scale, roll, round((0.75 + 1.25 * number) * width), round(1.25 * width), yaw)
    shape = cell.shape(protect).region(cell.pose, WIDTH, HEIGHT, masked=PROTECTIONS[protect].masked)
    assert shape is not None
    origin = Origin(FACE, finder, number=number, found=True, cell=cell.numbers)
    return grow(Region(*shape, origin), blank(grid)).record


def blank(grid: Grid | None = None) -> Photo:
    return Photo(np.zeros((HEIGHT, WIDTH), np.uint8), grid)


def of_box(placing: str, grid: Grid | None = None) -> RegionRecord:
    """The record of a user's box, which no landmarks placed."""
    there = place(blank(), OWN, landmarks=False, origin=Origin(BOX, str(OWN)))
    found = grow(there.region, blank(grid)).record
    return replace(found, origin=replace(found.origin, found=placing != "box"))


def stating(*regions: RegionRecord, method: str = "attributes", **fields: Any) -> Certificate:
    parameters = {"attributes": "none", "protect": "head"}
    made = build(method, {"epsilon": 1} if method == "dp-pix" else parameters | fields.pop("settings", {}))
    usual: dict[str, Any] = {
        "method": method,
        "parameters": made.parameters(),
        "request": tuple(dict.fromkeys(r.origin.finder for r in regions)),
        "guarantees": tuple(made.guarantee(height=9, width=9, channels=1) for _ in regions),
        "regions": regions,
        "composition": None,
        "strength": "weak",
        "accountant": "",
        "bits": "secure",
        "output": Output(64 * "0", "png", WIDTH, HEIGHT, 1),
    }
    return Certificate(**usual | fields)


def contradictions(certificate: Certificate) -> list[str]:
    assert certificate.output is not None
    assert certificate.method is not None
    method = build(certificate.method, {k: v for k, v in certificate.parameters.items() if v is not None})
    alone = [problem for r in certificate.regions if (problem := r.problem(width=WIDTH, height=HEIGHT))]
    about = request_problems(certificate, certificate.output)
    return [*alone, *about, *place_problems(certificate, certificate.output, method)]


def box(text: str, x: int, y: int, w: int, h: int, **fields: Any) -> RegionRecord:
    masked = fields.pop("masked", None)
    return RegionRecord(Box(x, y, w, h), Origin(**{"kind": BOX, "finder": text} | fields), masked)


def pixels(*regions: RegionRecord, **fields: Any) -> Certificate:
    return stating(*regions, method="dp-pix", **fields)


LANDMARKS, ALONE = {"settings": {"placing": "landmarks"}}, {"settings": {"placing": "box"}}
EVERYTHING = RegionRecord(Box(0, 0, WIDTH, HEIGHT), Origin(WHOLE, WHOLE))
INSTEAD = replace(EVERYTHING, origin=Origin(WHOLE, fallback=True))
UPRIGHT = face(1, FACES, roll=0, yaw=None)
FIRST, SECOND, THIRD = (face(number, FACES) for number in (1, 2, 3))
BESIDE = [face(number, KEPT) for number in (1, 3)]
GROWN = [face(number, FACES, grid=JPEG) for number in (1, 2)]
SEEN = box("faces", 10, 10, 40, 40, kind=FACE, number=1, found=True)

HONEST: dict[str, Certificate] = {
    "faces": stating(FIRST, SECOND, THIRD),
    "faces by landmarks": stating(FIRST, **LANDMARKS),
    "a face by its box": stating(UPRIGHT),
    "a face by its box alone": stating(UPRIGHT, **ALONE),
    "faces twice": stating(FIRST, FIRST, request=(FACES, FACES)),
    "beside a kept face": stating(*BESIDE),
    "beside a kept face, cut": stating(BESIDE[0], replace(BESIDE[1], masked=BESIDE[1].masked - 99)),
    "boxes, one cut": stating(
        replace(face(1, KEPT, protect="box"), masked=4000),
        face(3, KEPT, protect="box"),
        settings={"protect": "box"},
    ),
    "faces of a JPEG": stating(*GROWN),
    "a user's box": stating(of_box("auto")),
    "a user's box alone": stating(of_box("box"), **ALONE),
    "a user's box in a JPEG": stating(of_box("box", JPEG), **ALONE),
    "a portrait": stating(EVERYTHING),
    "a whole photo instead": pixels(INSTEAD, request=("faces", "1,2,3,4")),
    "a box": pixels(box("20,20,4,4", 20, 20, 4, 4)),
    "a box of a JPEG": pixels(box("20,20,4,4", 15, 15, 18, 18, grown_to="JPEG")),
    "a mask": pixels(box(MASKED, 20, 20, 9, 9, kind=MASK, masked=7)),
    "one missing": pixels(box("20,20,4,4", 20, 20, 4, 4), request=("20,20,4,4", "faces"), missing=("faces",)),
    "a face": pixels(SEEN),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_ones_do_not(name: str) -> None:
    assert contradictions(HONEST[name]) == []


def of(record: RegionRecord, **fields: Any) -> RegionRecord:
    """A record with another origin."""
    return replace(record, origin=replace(record.origin, **fields))


def renamed(finder: str, *records: RegionRecord) -> list[RegionRecord]:
    return [of(record, finder=finder) for record in records]


def cell(record: RegionRecord, *numbers: int) -> RegionRecord:
    return of(record, cell=numbers)


TWO = [of(one, number=n) for n, one in enumerate((FIRST, SECOND), start=1)]
FORGED: dict[str, Certificate] = {
    "a face without its turn, by landmarks": stating(UPRIGHT, **LANDMARKS),
    "a turn that a box told": stating(FIRST, **ALONE),
    "a roll that a box told": stating(face(1, FACES, yaw=None)),
    "a roll beyond a full turn": stating(cell(FIRST, 20, 13, 32, 20, 1)),
    "a scale that is none": stating(cell(FIRST, 64, 1, 32, 20, 1)),
    "a cell beside the photo": stating(cell(FIRST, 20, 1, 999, 20, 1)),
    "a cell of a box that was not found": stating(of(FIRST, kind=BOX, finder=str(OWN), found=False)),
    "a user's box not placed, by landmarks": stating(of_box("auto"), **LANDMARKS),
    "landmarks that the words deny": stating(of_box("box")),
    "landmarks that were not looked for": stating(of_box("auto"), **ALONE),
    "less than a user's box": stating(replace(of_box("auto"), box=OWN)),
    "more pixels than the head of a box": stating(replace(of_box("auto"), masked=9999)),
    "a number that was not chosen": stating(*renamed(f"{FACES} only=1,3", FIRST, SECOND)),
    "one chosen that is not there": stating(*renamed(f"{FACES} only=1,2,3", FIRST, SECOND)),
    "the excepted one": stating(*renamed(f"{FACES} except=1", FIRST, SECOND)),
    "a hole without an exception": stating(FIRST, THIRD),
    "an exception beyond the last face": stating(*renamed(f"{FACES} except=4", *TWO)),
    "only and except": stating(*renamed(f"{FACES} only=1 except=2", FIRST)),
    "an exception twice": stating(*renamed(f"{FACES} except=3,3", *TWO)),
    "exceptions out of order": stating(*renamed(f"{FACES} except=4,3", *TWO)),
    "an exception in other words": stating(*renamed(f"{FACES} except 3", *TWO)),
    "a face without a number": stating(of(FIRST, number=None)),
    "one number twice": stating(FIRST, FIRST),
    "more pixels than the head beside a kept face": stating(
        BESIDE[0], replace(BESIDE[1], masked=BESIDE[1].masked + 1)
    ),
    "no mask beside a kept face": stating(BESIDE[0], replace(BESIDE[1], masked=None)),
    "cut where nothing is kept": stating(FIRST, replace(SECOND, masked=SECOND.masked - 1)),
    "a mask of a box that nothing cuts": stating(
        replace(face(1, FACES, protect="box"), masked=4000), settings={"protect": "box"}
    ),
    "grown by 160 pixels": stating(of(replace(FIRST, box=Box(0, 0, WIDTH, HEIGHT)), grown_to="JPEG")),
    "grown by two blocks more": stating(replace(GROWN[0], box=replace(GROWN[0].box, w=GROWN[0].box.w + 32))),
    "grown by nothing": stating(of(FIRST, grown_to="JPEG")),
    "grown by a pixel more": stating(replace(GROWN[0], box=replace(GROWN[0].box, w=GROWN[0].box.w + 1))),
    "a grown mask of no more pixels": stating(replace(GROWN[0], masked=FIRST.masked)),
    "a box of a JPEG beyond its blocks": pixels(box("20,20,4,4", 15, 15, 50, 18, grown_to="JPEG")),
    "a box of a JPEG that is none": pixels(box("20,20,4,4", 20, 20, 4, 4, grown_to="JPEG")),
    "a box that grew without blocks": pixels(box("20,20,4,4", 15, 15, 18, 18)),
    "two formats": pixels(
        box("20,20,4,4", 15, 15, 18, 18, grown_to="JPEG"),
        box("60,60,4,4", 40, 40, 32, 32, grown_to="WebP", escapes=True),
    ),
    "blocks of two grids": pixels(
        box("20,20,4,4", 15, 15, 18, 18, grown_to="JPEG"), box("60,60,4,4", 50, 50, 18, 18, grown_to="JPEG")
    ),
    "a mask without one": pixels(box(MASKED, 20, 20, 9, 9, kind=MASK)),
    "a mask in place of a face": stating(box(MASKED, 20, 20, 9, 9, kind=MASK, masked=7, found=True)),
    "one box twice": pixels(*[box("20,20,4,4", 20, 20, 4, 4)] * 2),
    "missing and there": pixels(SEEN, missing=("faces",)),
    "a box that was not found": pixels(SEEN, request=("faces", "1,2,3,4"), missing=("1,2,3,4",)),
    "a box as the whole photo": pixels(replace(EVERYTHING, origin=Origin(BOX, WHOLE))),
    "a whole photo that grew": pixels(of(EVERYTHING, grown_to="JPEG")),
    "a portrait and a face": stating(EVERYTHING, FIRST),
    "a whole photo instead, and more": pixels(INSTEAD, SEEN, request=("faces",)),
    "a whole photo instead of a box": pixels(INSTEAD, request=("1,2,3,4",)),
    "a whole photo instead, of a finder": pixels(of(INSTEAD, finder="faces"), request=("faces",)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_ones_are_found_out(name: str) -> None:
    assert contradictions(FORGED[name])


@pytest.mark.parametrize(
    ("finder", "said"),
    [
        (KEPT, ["face 2 stays as it is, as was asked for"]),
        ("faces except=1,2", ["faces 1 and 2 stay as they are, as was asked for"]),
        ("faces only=1,3", ["every face but 1 and 3 stays as it is, as was asked for"]),
        ("faces except=" + ",".join(map(str, range(1, 30))),
         ["faces 1, 2, 3, 4, 5, 6, 7, 8 and 21 more stay as they are, as was asked for"]),
        ("faces", []),
        ("faces except=\x1b", []),
        ("signs except=2", []),
    ],
)  # fmt: skip
def test_faces_that_stay_are_named(finder: str, said: list[str]) -> None:
    assert list(stays([finder], [of(FIRST, finder=finder)])) == said
    assert stays([finder], [INSTEAD]) == ()


def test_the_rules_are_those_by_which_grids_are_made() -> None:
    """Every grid that a photo can have gives regions that are accepted, wherever its lines lie."""
    dice: Callable[[int, int], int] = np.random.RandomState(5).randint
    for sides in ((8, 8), (16, 8), (16, 16), (32, 8)):
        for _ in range(20):
            grid = Grid(*sides, dice(0, 16), dice(0, 16))
            x, y = dice(0, WIDTH - 30), dice(0, HEIGHT - 30)
            asked = Box(x, y, dice(1, WIDTH - x), dice(1, HEIGHT - y))
            found = grow(Region(asked, origin=Origin(BOX, str(asked))), blank(grid)).record
            other = grow(Region(OWN, origin=Origin(BOX, str(OWN))), blank(grid)).record
            assert contradictions(pixels(found, other, request=(str(asked), str(OWN)))) == []


def test_every_face_that_was_asked_for_has_to_be_protected_wholly(tmp_path):
    data = pytest.importorskip("skimage.data")
    pytest.importorskip("dpveil_faces")
    two = np.concatenate([data.astronaut()[:256, 100:356]] * 2, axis=1)
    path, _ = dpveil.obfuscate(two, "attributes", attributes="none").save(tmp_path / "a.png")
    stated = dpveil.verify(path).certificate
    first, second = stated.regions
    assert [*request_problems(stated, stated.output)] == []
    forged = replace(stated, regions=(first, replace(second, masked=1)))
    assert problems(forged) == [
        f"the region {forged.regions[1].in_words()} is not that of its cell of the grid"
    ]
    former = replace(second, masked=1, origin=replace(second.origin, cell=None))
    assert "faces were requested, and one is protected in part alone" in problems(
        replace(stated, regions=(first, former))
    )


def test_grey_survives_formats_without_grey(tmp_path):
    release = dpveil.obfuscate(photo()[:, :, :1], "dp-pix", epsilon=1, block=30)
    for suffix in ("webp", "png", "jpg"):
        assert dpveil.verify(release.save(tmp_path / f"g.{suffix}")[0]).status == "consistent"


def test_a_certificate_that_was_never_saved_with_a_file_is_found(saved):
    image, beside = saved
    rewrite(beside, json.loads(beside.read_text(encoding="utf-8")) | {"output": None})
    assert dpveil.verify(image).problems == ("the certificate describes no file",)
