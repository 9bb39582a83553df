"""What previews draw, `explain` and `compare` state and `obfuscate` does is one plan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

import dpveil
import dpveil.catalogue
import dpveil.errors
from dpveil.cli import run
from dpveil.cli.compare import Line, compare
from dpveil.cli.options import COVERED
from dpveil.core.certificate import SEEDED
from dpveil.core.photo import Photo
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SeededBits
from dpveil.regions import parse
from dpveil.regions.spec import NAMED_FINDERS
from dpveil.release import plan as planning
from dpveil.release.plan import default_method

pytest.importorskip("dlib")
pytest.importorskip("dpveil_faces")

FACES = {
    "gallery": {"epsilon": "4"},
    "attributes": {"attributes": "none"},
    "latent": {"epsilon": "300"},
    "dp-pix": {"epsilon": "4", "block": "16", "neighbourhood": "16"},
    "fill": {"level": "127"},
}


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "astronaut.jpg"
    Image.fromarray(astronaut()[:300, 80:380]).save(path, quality=90)  # blocks, to which regions grow
    return path


def method_of(name: str) -> Method:
    from dpveil.catalogue import build

    return build(name, {key: int(v) if v.isdigit() else v for key, v in FACES[name].items()})


def boxes(document: dict, key: str) -> list[list[int]]:
    return [entry["box"] for entry in document[key]]


@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("regions", ["faces", "whole", "40,40,120,140"])
def test_everything_reads_one_plan(name: str, regions: str, photo: Path, tmp_path: Path, capsys) -> None:
    method, read = method_of(name), dpveil.read(photo)
    planned = dpveil.plan(read, method, regions=regions)
    again = dpveil.plan(read, method, regions=regions)
    assert [r.box for r in again.regions] == [r.box for r in planned.regions]
    stated = [list(r.record.to_json()["box"]) for r in planned.regions]
    given = regions == "40,40,120,140"
    assert [text.startswith("the box 40,40,120,140 became") for text in planned.grown] == [True] * given
    assert all("JPEG" in text for text in planned.grown)
    assert all(("oval" in text) == method.draws_faces for text in planned.grown)

    release = dpveil.obfuscate(read, method, regions=regions, bits=SeededBits(7))
    certificate = release.certificate
    assert certificate.regions == tuple(r.record for r in planned.regions)
    assert certificate.guarantees == planned.guarantees
    assert (certificate.composition, certificate.strength) == (planned.total, planned.strength)
    assert {*planned.warnings} - {*planned.remarks} == {*certificate.warnings} - {SEEDED}
    assert planned.remarks == release.notes
    assert np.array_equal(release.image, planned.release(bits=SeededBits(7)).image)

    compared, _ = compare(
        read, [Line(name, None, (method,))], {"faces": [regions], "whole": [regions]}, bits=SeededBits(7)
    )
    [(_, [made])] = compared.lines
    assert made is not None
    assert made.guarantee == planned.total
    assert boxes(made.to_json(), "regions") == stated  # type: ignore[arg-type]
    view = compared.view
    if view.w <= compared.cell[0] and view.h <= compared.cell[1]:
        assert np.array_equal(made.picture, release.image[view.slices])

    options = [text for key, value in FACES[name].items() for text in (f"--{key}", value)]
    assert run(["explain", str(photo), "--method", name, *options, "--regions", regions, "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert boxes(explained, "regions") == stated
    assert explained["total"] == planned.total.to_json()  # type: ignore[union-attr]
    assert explained["strength"] == planned.strength
    assert explained["in_the_clear"] == list(planned.in_the_clear)

    if regions == "faces":
        preview = tmp_path / "preview.png"
        assert (
            run(["faces", str(photo), "--method", name, *options, "--preview", str(preview), "--json"]) == 0
        )
        assert boxes(json.loads(capsys.readouterr().out), "faces") == stated


def test_a_plan_draws_and_spends_nothing(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("a plan asked for bits")

    monkeypatch.setattr(planning, "SecureBits", drawn)
    made = dpveil.plan(dpveil.read(photo), "gallery", epsilon=4)
    assert made.regions
    with pytest.raises(AssertionError, match="asked for bits"):
        made.release()


def test_who_asks_for_more_than_is_promised_gets_nothing() -> None:
    image = np.zeros((16, 16), np.uint8)
    asked = {"epsilon": 20, "block": 8, "neighbourhood": 4}
    assert dpveil.plan(image, "dp-pix", **asked).strength == "practically none"
    with pytest.raises(dpveil.errors.TooWeak, match="practically none, and at least weak") as refusal:
        dpveil.obfuscate(image, "dp-pix", at_least="weak", **asked)
    assert refusal.value.exit_code == 3
    assert (
        dpveil.obfuscate(image, "fill", regions="whole", at_least="strong").certificate.strength == "strong"
    )
    blank = np.full((200, 200, 3), 128, np.uint8)
    with pytest.raises(dpveil.errors.TooWeak, match="unprotected copy"):
        dpveil.obfuscate(Photo(blank), "fill", regions="faces", if_none="copy", at_least="weak")
    with pytest.raises(dpveil.errors.UnknownName, match="strength"):
        dpveil.plan(image, "fill", regions="whole", at_least="firm")


def test_a_mask_that_is_changed_after_planning_protects_what_it_did() -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    mask = np.ones((16, 16), bool)
    made = dpveil.plan(image, "fill", regions=dpveil.Region(dpveil.Box(0, 0, 16, 16), mask))
    mask[:] = False
    assert (made.release().image == 127).all()
    assert made.release().certificate.regions[0].masked == 256


def test_methods_that_replace_the_same_kind_cover_the_same_pixels(photo: Path, tmp_path: Path) -> None:
    """So a ledger takes releases by several of them: heads by three, and boxes by two; no head is a box."""
    covered = {name: dpveil.plan(photo, method_of(name), regions="faces").coverage for name in FACES}
    assert covered["gallery"] == covered["attributes"] == covered["latent"]
    assert covered["dp-pix"] == covered["fill"]
    assert covered["gallery"] != covered["fill"]
    Image.open(photo).save(tmp_path / "copy.png")
    copied = dpveil.plan(tmp_path / "copy.png", "fill", regions="faces").coverage
    assert copied is not None
    assert covered["fill"] is not None
    assert copied.photo == covered["fill"].photo
    assert copied.pixels != covered["fill"].pixels, "regions grow to the blocks of a JPEG alone"


def test_what_was_not_found_promises_nothing() -> None:
    blank = np.full((200, 200, 3), 128, np.uint8)
    asked = {"regions": ["faces", "0,0,9,9"], "if_none": "copy"}
    assert dpveil.plan(blank, "fill", **asked).strength == "strong"
    with pytest.raises(dpveil.errors.TooWeak, match="leaves faces visible"):
        dpveil.plan(blank, "fill", at_least="weak", **asked)


@pytest.mark.parametrize("name", NAMED_FINDERS)
def test_the_command_line_and_python_have_one_default(name: str) -> None:
    assert (default_method([parse(name)]) is not None) == (name in COVERED)
