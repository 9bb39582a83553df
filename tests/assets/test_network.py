"""Limits of networks from anybody, which a codec of large networks may raise by a factor."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.assets import network
from dpveil.assets.network import Network
from dpveil.codecs import GAN, StyleGAN
from dpveil.errors import ModelError
from tiny_onnx import repainter

SHAPE = (1, 3, 32, 32)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("MOST", "at most"),
        ("FIXED", "million constants"),
        ("ROOM", "takes more than 0 MiB"),
        ("WORK", "operations"),
    ],
)
def test_a_network_above_a_limit_is_refused_unless_it_may_be_larger(
    limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = np.frombuffer(repainter(), np.uint8)
    pixels = 32**2
    size = {"MOST": len(contents), "FIXED": 12, "ROOM": 24 * pixels + 4, "WORK": 18 * pixels}[limit]
    monkeypatch.setattr(network, limit, size - 1)
    with pytest.raises(ModelError, match=words):
        Network.of(contents, SHAPE, SHAPE, "paints", 1.0)
    assert Network.of(contents, SHAPE, SHAPE, "paints", 1.0, StyleGAN.large)
    assert (GAN.large, StyleGAN.large) == (1, 4)


def test_engines_get_what_was_read_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = repainter() + b"\x12\x05maker"
    seen: list[bytes] = []
    usual = network.fastest
    monkeypatch.setattr(network, "fastest", lambda given: (seen.append(given), usual(given))[1])
    made = Network.of(np.frombuffer(contents, np.uint8), SHAPE, SHAPE, "paints", 1.0)
    assert made.contents == contents
    assert [b"maker" in one for one in seen] == [False]
