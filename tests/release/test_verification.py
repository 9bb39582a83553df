"""Every edit of an image or of a certificate is found; forgery of both is not, and verify says so."""

import hashlib
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.core.certificate import Certificate, Output
from dpveil.core.origin import Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.core.registry import METHODS
from dpveil.errors import NoRegion, UnknownName
from dpveil.faces import Attributes
from dpveil.regions import Finder
from dpveil.release import verification
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


def test_if_none_whole_is_consistent(tmp_path):
    assert dpveil.verify(save(tmp_path, regions=Nobody(), if_none="whole")[0]).status == "consistent"


def test_what_was_not_found_beside_a_box_is_missing(tmp_path):
    class NoFace(Nobody):
        description = "faces"

    image, beside = save(tmp_path, regions=["2,3,20,10", NoFace()], if_none="copy")
    assert dpveil.verify(image).status == "consistent"
    data = json.loads(beside.read_text(encoding="utf-8"))
    rewrite(beside, data | {"missing": [], "publishable": True})
    assert "faces were requested" in " ".join(dpveil.verify(image).problems)


EDITS = {
    "epsilon": (("guarantees", 0, "epsilon"), 1),
    "box": (("regions", 0, "box", 2), 21),
    "position": (("regions", 0, "box", 0), 3),
    "kind": (("guarantees", 0), {"kind": "zcdp", "rho": 2}),
    "relation": (("guarantees", 0, "relation"), {"name": "any-image"}),
    "m": (("guarantees", 1, "relation", "m"), 256),
    "parameter": (("parameters", "epsilon"), 1),
    "neighbourhood": (("parameters", "neighbourhood"), None),
    "composition": (("composition", "epsilon"), 2),
    "no composition": (("composition",), None),
    "hash": (("output", "sha256"), "0" * 64),
    "a sentence": (("guarantees", 0, "scope"), {"covers": "all", "in_the_clear": []}),
    "a member more": (("warnings",), []),
    "request": (("request", 0), "30,20,5,5"),
    "masked": (("regions", 1, "masked"), 1000),
    "found": (("regions", 0, "found"), True),
}


@pytest.mark.parametrize("name", EDITS)
def test_each_edit_of_the_certificate_is_found(saved, name):
    image, beside = saved
    path, value = EDITS[name]
    data = json.loads(beside.read_text(encoding="utf-8"))
    if name == "kind":
        value = {**value, "relation": data["guarantees"][0]["relation"]}
    rewrite(beside, changed(data, path, value))
    result = dpveil.verify(image)
    assert result.status == "inconsistent"
    assert not result.publishable
    assert result.problems
    assert all("\n" not in problem for problem in result.problems)


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


def test_a_certificate_that_was_never_saved_with_a_file_is_found(saved):
    image, beside = saved
    rewrite(beside, json.loads(beside.read_text(encoding="utf-8")) | {"output": None})
    assert dpveil.verify(image).problems == ("the certificate describes no file",)


def test_grey_survives_formats_without_grey(tmp_path):
    release = dpveil.obfuscate(photo()[:, :, :1], "dp-pix", epsilon=1, block=30)
    for suffix in ("webp", "png", "jpg"):
        assert dpveil.verify(release.save(tmp_path / f"g.{suffix}")[0]).status == "consistent"


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


@pytest.mark.parametrize("protect", ["head", "box", "face"])
def test_a_face_that_is_not_on_the_grid_is_refused(tmp_path, protect):
    """Each number of its cell moved, the region moved or resized, the cell left out, none or impossible."""
    data = pytest.importorskip("skimage.data")
    pytest.importorskip("dpveil_faces")
    made = dpveil.obfuscate(data.astronaut(), "attributes", attributes="none", protect=protect)
    path, beside = made.save(tmp_path / "a.png")
    assert dpveil.verify(path).problems == ()
    stated = json.loads(beside.read_text(encoding="utf-8"))
    x, y, w, h = stated["regions"][0]["box"]
    cell = stated["regions"][0]["origin"]["cell"]
    others = [[*cell[:n], cell[n] + (9 if n == 1 else 1), *cell[n + 1 :]] for n in range(5)]
    for changed in (*others, cell[:3], [300, *cell[1:]], [cell[0], 99, *cell[2:]], [*cell[:4], 3], [], None):
        edited = json.loads(json.dumps(stated))
        edited["regions"][0]["origin"] |= {"cell": changed}
        if changed is None:
            del edited["regions"][0]["origin"]["cell"]
        rewrite(beside, edited)
        assert "grid" in " ".join(dpveil.verify(path).problems), changed
    for other in {"head", "box", "face"} - {protect}:
        edited = json.loads(json.dumps(stated))
        edited["parameters"]["protect"] = other
        rewrite(beside, edited)
        assert "grid" in " ".join(dpveil.verify(path).problems), other
    for box in ([x + 1, y, w - 1, h], [x, y, w, h - 1], [x, y + 1, w, h - 2]):
        edited = json.loads(json.dumps(stated))
        edited["regions"][0]["box"] = box
        rewrite(beside, edited)
        assert "grid" in " ".join(dpveil.verify(path).problems), box
    for text in ([1.5, 0, 0, 0], "4000", [True, 0, 0, 0], 7):
        edited = json.loads(json.dumps(stated))
        edited["regions"][0]["origin"]["cell"] = text
        rewrite(beside, edited)
        assert "malformed" in " ".join(dpveil.verify(path).problems), text


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
