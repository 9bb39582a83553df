"""QR and bar codes are found in any turn and covered, and nothing else is."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage import data

import dpveil
from dpveil.core.photo import Photo
from dpveil.errors import NoRegion
from dpveil.regions import Codes

BARS = "10100010110100111011001100100110111101001110101010110011011011001000010101110010011101000100101"
"""EAN-13 of 0012345678905."""


def with_code(code: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """A photo with a code in it, and which of its pixels the code and its quiet zone take."""
    photo = cv2.resize(data.astronaut(), (900, 800))
    height, width = code.shape
    turned = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1)
    turned[:, 2] += 400 - width / 2, 300 - height / 2
    shown, place = (cv2.warpAffine(one, turned, (900, 800)) for one in (code, np.full_like(code, 255)))
    return np.where(place[..., None] > 127, shown[..., None], photo).astype(np.uint8), place > 127


def qr() -> np.ndarray:
    code = cv2.QRCodeEncoder.create().encode("https://example.org/badge/81723")
    return np.pad(cv2.resize(code, (120, 120), interpolation=cv2.INTER_NEAREST), 10, constant_values=255)


def bars() -> np.ndarray:
    row = np.array([0 if bit == "1" else 255 for bit in BARS], np.uint8)
    return np.pad(np.repeat(np.repeat(row[None], 70, 0), 2, 1), 16, constant_values=255)


@pytest.mark.parametrize("angle", [0, 15, 45, 90])
@pytest.mark.parametrize("code", [qr(), bars()], ids=["qr", "bars"])
def test_a_code_is_found_and_covered(code: np.ndarray, angle: int) -> None:
    image, place = with_code(code, angle)
    release = dpveil.obfuscate(image, "fill", regions="codes")
    [record] = release.certificate.regions
    assert (record.origin.kind, record.origin.finder) == ("code", "codes")
    inner = cv2.erode(place.astype(np.uint8), np.ones((45, 45), np.uint8)) > 0
    covered = np.zeros_like(place)
    covered[record.box.slices] = True
    assert covered[inner].all()
    assert covered[~place].mean() < 0.1
    assert (release.image == 127)[covered].all()


def test_where_there_is_no_code_nothing_is_found() -> None:
    with pytest.raises(NoRegion):
        Codes()(Photo(data.astronaut()))
    assert not Codes().find(Photo(np.zeros((1, 1), np.uint8)))
