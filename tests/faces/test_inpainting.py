"""The filling as a parameter: named by its hash, asked for before anything is paid, verified without it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facespace_made import FACE, Flat, astronaut, codec
from PIL import Image

import dpveil
from dpveil import Photo
from dpveil.assets import Reference, save
from dpveil.cli import run
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, ModelError
from dpveil.faces import TABLE, FaceMethod
from dpveil.faces.inpainting import INPAINTING
from dpveil.noise.bits import SeededBits
from dpveil.release.verification import verify
from tiny_onnx import lama

FILL = 50
ELSEWHERE = "lama sha256:" + 64 * "0"
NAMED = {"gallery": "gallery sha256:" + 64 * "0"}
GIVEN: dict[str, dict[str, Any]] = {
    "latent": {"epsilon": 50, "codec": "pca 8 sha256:" + 64 * "0"},
    "gallery": {"epsilon": 8, **NAMED},
    "attributes": {"attributes": "gender=1", "model": "attributes sha256:" + 64 * "0", **NAMED},
}


class Untouchable:
    """A ledger that must not be asked."""

    def debit(self, subject: str, guarantee: object, key: object, **more: Any) -> Any:
        raise AssertionError("something was paid")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lama") / "secret name.onnx"
    path.write_bytes(lama(fill=FILL))
    return path


def test_what_is_replaced_around_the_face_is_filled_by_the_network(network: Path) -> None:
    photo = np.full_like(astronaut(), 200)  # a face is placed by its box, and none has to be found
    released = [
        dpveil.obfuscate(
            photo, Flat(placing="box", protect="box", inpainting=how), regions=FACE, bits=SeededBits(1)
        )
        for how in ("telea", network)
    ]
    (smooth, box), (filled, _) = ((one.image, one.certificate.regions[0].box) for one in released)
    rim = np.zeros(photo.shape[:2], np.bool_)
    rim[box.slices] = True
    rim[box.y + 8 : box.y + box.h - 8, box.x + 8 : box.x + box.w - 8] = False
    assert np.abs(smooth[rim].astype(int) - 200).mean() < 10
    assert np.median(filled[rim]) == FILL
    middle = np.s_[box.y + box.h // 2, box.x + box.w // 2]
    assert (np.abs(filled[middle].astype(int) - 90) <= 3).all(), "the released face is shown over it"


def test_certificates_name_the_network_by_its_hash_and_verify_without_it(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    save(codec(), "model.safetensors")
    Image.fromarray(astronaut()).save("astronaut.png")
    own = Path("own.onnx")
    own.write_bytes(network.read_bytes())
    words = ["astronaut.png", "--out", "out.png", "--regions", FACE, "--json"]
    method = ["--method", "latent", "--epsilon", "50", "--codec", "model.safetensors", "--placing", "box"]
    assert run(["obfuscate", *words, *method, "--inpainting", "own.onnx"]) == 0
    text = Path("out.png.certificate.json").read_text(encoding="utf-8")
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    assert json.loads(text)["parameters"]["inpainting"] == f"lama sha256:{digest}"
    assert "onnx" not in text
    own.unlink()
    assert verify("out.png").problems == ()
    capsys.readouterr()
    words[2] = "other.png"
    assert run(["obfuscate", *words, *method, "--inpainting", "own.onnx"]) == 4
    assert "there is no network own.onnx" in capsys.readouterr().out
    assert not Path("other.png").exists()


@pytest.mark.parametrize("name", TABLE)
def test_a_network_that_is_not_at_hand_is_asked_for_before_anything_is_paid(name: str) -> None:
    """Every method of the table: `prepare` of each has to ask."""
    method = TABLE[name](**GIVEN[name], inpainting=ELSEWHERE)
    assert method.parameters()["inpainting"] == ELSEWHERE
    assert method.guarantee(height=90, width=80, channels=3) is not None
    with pytest.raises(ModelError, match="network with the hash 000000000000… is not available") as refusal:
        method.prepare(height=90, width=80, channels=3)
    assert "--inpainting" in refusal.value.hint


def test_nothing_is_paid_and_no_face_is_drawn_without_the_network() -> None:
    Flat.seen.clear()
    with pytest.raises(ModelError, match="not available"):
        dpveil.obfuscate(
            astronaut(),
            Flat(placing="box", inpainting=ELSEWHERE),
            regions=FACE,
            ledger=Untouchable(),
            subject="album",
        )
    photo = Photo(astronaut())
    heads = Flat(placing="box", inpainting=ELSEWHERE).place(photo, [Region(Box(177, 65, 88, 108))])
    with pytest.raises(ModelError, match="not available"):
        heads.draw(SeededBits(1), ())
    assert Flat.seen == []


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(lama(fill=FILL))
    first = Reference.of(path, INPAINTING)
    assert Reference.of(str(path), INPAINTING).source is first.source
    path.write_bytes(lama(fill=FILL, gain=250.0, mask="mask"))
    path.touch()
    assert Reference.of(path, INPAINTING) != first
    assert Reference.of(first, INPAINTING) is first
    assert str(Reference.of("telea", INPAINTING)) == "telea"
    path.write_bytes(b"no network")
    with pytest.raises(ModelError, match=r"net.onnx is not a network"):
        Reference.of(path, INPAINTING)


@pytest.mark.parametrize("value", [3, True, b"telea", ["telea"]])
def test_what_names_no_file_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="inpainting"):
        Flat(inpainting=value)
    with pytest.raises(InvalidParameter, match="inpainting"):
        Flat(inpainting=None)


def test_the_default_is_the_network_of_the_side_package_and_telea_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method: FaceMethod = Flat()
    assert method.parameters()["inpainting"] == str(Reference.of("default", INPAINTING))
    assert str(method.parameters()["inpainting"]).startswith("completion sha256:")
    assert Flat(inpainting=method.parameters()["inpainting"]).inpainting.held is method.inpainting.held
    monkeypatch.setattr("dpveil.assets.defaults.find_spec", lambda _: None)
    assert Flat().parameters()["inpainting"] == "telea"
    assert Flat() == Flat(inpainting="telea")
    with pytest.raises(InvalidParameter, match=r"inpainting = 'Telea' is neither .*: did you mean telea"):
        Flat(inpainting="Telea")
