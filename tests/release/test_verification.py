"""Every edit of an image or of a certificate is found; forgery of both is not, and verify says so."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.core.region import Box, RegionRecord
from dpveil.core.region_origin import Origin
from dpveil.errors import NoRegion, UnknownName
from dpveil.regions import Finder
from dpveil.release.words import kept_faces_sentences


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
    assert dpveil.verify(image).problems == ("faces was requested, and no region is of it",)


KINDS = ("x", -1, 0, 3, 2**40, 0.5, None, True, [], {}, ["a"], {"a": 1}, "1e999999999", ...)


def test_no_edit_with_a_fitting_checksum_goes_unnoticed_where_a_number_depends_on_it(saved):
    image, beside = saved
    data = json.loads(beside.read_text(encoding="utf-8"))
    free = [("tool",), ("checksum",), ("parameters", "block")]
    for path in leaves(data):
        if path in free or path[0] == "regions":
            continue  # nothing can be recomputed for these: forged together, they say the same
        if path[0] == "request":
            continue
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
    path, beside = dpveil.obfuscate(np.zeros((8, 8), np.uint8), "fill", regions="whole").save(
        tmp_path / "a.png"
    )
    assert dpveil.verify(path, at_least="strong").refused == ""
    beside.write_text("{}")
    assert "schema" in dpveil.verify(path, at_least="weak").refused
    beside.unlink()
    assert "certificate" in dpveil.verify(path, at_least="weak").refused
    copy = dpveil.obfuscate(np.zeros((200, 200), np.uint8), "fill", regions="faces", if_none="copy")
    path, _ = copy.save(tmp_path / "b.png")
    assert dpveil.verify(path, at_least="weak").refused == "it is an unprotected copy"


KEPT = "faces margin=0 except=2"


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
    face = RegionRecord(Box(0, 0, 9, 9), Origin("face", finder, number=1, found=True))
    assert list(kept_faces_sentences([finder], [face])) == said
    assert kept_faces_sentences([finder], [replace(face, origin=Origin("whole", fallback=True))]) == ()


def test_grey_survives_formats_without_grey(tmp_path):
    release = dpveil.obfuscate(photo()[:, :, :1], "dp-pix", epsilon=1, block=30)
    for suffix in ("webp", "png", "jpg"):
        assert dpveil.verify(release.save(tmp_path / f"g.{suffix}")[0]).status == "consistent"


def test_a_certificate_that_was_never_saved_with_a_file_is_found(saved):
    image, beside = saved
    rewrite(beside, json.loads(beside.read_text(encoding="utf-8")) | {"output": None})
    assert dpveil.verify(image).problems == ("the certificate describes no file",)
