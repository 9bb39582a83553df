"""The filling as a parameter: named by its hash, asked for before anything is paid, verified without it."""

from __future__ import annotations

from typing import Any

import pytest
from facespace_made import FACE, Flat, astronaut

import dpveil
from dpveil import Photo
from dpveil.assets import Reference
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, ModelError
from dpveil.faces import TABLE, FaceMethod
from dpveil.faces.base import INPAINTING
from dpveil.noise.bits import SeededBits

ELSEWHERE = "completion sha256:" + 64 * "0"
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
    monkeypatch.setattr("dpveil.assets.store.find_spec", lambda _: None)
    assert Flat().parameters()["inpainting"] == "telea"
    assert Flat() == Flat(inpainting="telea")
    with pytest.raises(InvalidParameter, match=r"inpainting = 'Telea' is neither .*: did you mean telea"):
        Flat(inpainting="Telea")
