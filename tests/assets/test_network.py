"""Networks of fixed shapes: ours run in this process, others in one of their own, with the same numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dpveil.assets import network
from dpveil.assets.network import Network
from dpveil.assets.reference import Reference
from dpveil.codecs import GAN, StyleGAN
from dpveil.codecs.base import CODEC
from dpveil.errors import ModelError
from tiny_onnx import field, model, node, repainter, value

SHAPE = (1, 3, 32, 32)


def of(contents: bytes, **more: int) -> Network:
    return Network.of(np.frombuffer(contents, np.uint8), SHAPE, SHAPE, "paints", 1.0, **more)


def test_the_same_numbers_come_from_here_and_from_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Reference.of("gan", CODEC).held.encoder
    given = np.random.default_rng(1).normal(size=ours.takes).astype(np.float32)
    assert ours.is_ours
    here = ours(given)
    monkeypatch.setattr(network, "OURS", frozenset())
    other = Network(ours.contents, ours.takes, ours.gives, ours.job)
    assert not other.is_ours
    assert (other(given) == here).all()
    assert (pickle.loads(pickle.dumps(other))(given) == here).all()  # noqa: S301  ours


def test_a_network_above_the_limit_is_refused_unless_it_may_be_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "MOST", len(repainter()) - 1)
    with pytest.raises(ModelError, match="at most"):
        of(repainter())
    assert of(repainter(), large=StyleGAN.large)
    assert (GAN.large, StyleGAN.large) == (1, 4)


def test_networks_of_another_job_are_refused_in_one_line() -> None:
    shown = (value("picture", SHAPE),), field(12, value("made", SHAPE))
    random = model(field(1, node("RandomUniformLike", ("picture",), "made")), b"", *shown)
    for contents, why in (
        (repainter(bias=9.0), "far off"),
        (repainter(side=16), "gives|does not run"),
        (repainter(bias=float("nan")), "finite"),
        (repainter()[:-9], "does not run"),
        (random, "random numbers"),
    ):
        with pytest.raises(ModelError, match=why) as caught:
            of(contents)
        assert "\n" not in str(caught.value)
