"""Networks of fixed shapes: ours run in this process, others in one of their own, with the same numbers."""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage import data

from dpveil.assets import network, network_process
from dpveil.assets.engines import NAME, SHA256, frontal_detector
from dpveil.assets.network import Network
from dpveil.assets.network_process import Confined, detect
from dpveil.assets.reference import Reference
from dpveil.codecs import GAN, StyleGAN
from dpveil.codecs.base import CODEC
from dpveil.errors import DPVeilError, ModelError
from dpveil.regions.detectors.table import YuNet
from tiny_onnx import field, model, node, repainter, value, yunet

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


# Networks that run in a process of their own: whatever that does, this one goes on with the same results.


IMAGE = np.zeros((64, 64, 3), np.uint8)
IMAGE[40:48, 32:40, 2] = 204
SETTINGS = np.array([0.5, 0.3])
DEADLY = {32: 67, 1374: 255}
"""Bytes, by place, with which OpenCV 4.13 ends the process that reads the network."""


def test_it_gives_what_this_process_would_and_outlives_its_child() -> None:
    network = Confined("yunet", yunet())
    here = detect(yunet(), IMAGE, SETTINGS)
    assert len(here) == 1
    assert (network(IMAGE, SETTINGS) == here).all()
    [(_, child)] = network.pool._idle
    assert (network(0 * IMAGE, SETTINGS)).shape == (0, 15)
    assert [one for _, one in network.pool._idle] == [child]
    with pytest.raises(ModelError, match="does not run"):
        network(IMAGE[:0], SETTINGS)
    child.process.kill()
    child.process.wait()
    assert (network(IMAGE, SETTINGS) == here).all()
    assert (pickle.loads(pickle.dumps(network))(IMAGE, SETTINGS) == here).all()  # noqa: S301


def test_a_file_that_ends_its_reader_is_refused(tmp_path: Path) -> None:
    changed = bytearray(yunet())
    for place, byte in DEADLY.items():
        changed[place] = byte
    (tmp_path / "net.onnx").write_bytes(changed)
    with pytest.raises(DPVeilError) as refusal:
        YuNet(tmp_path / "net.onnx")
    assert "\n" not in str(refusal.value)


def test_what_a_network_gives_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_process, "MOST_FOUND", 15 * 8 - 1)
    with pytest.raises(ModelError, match="ends the process"):
        Confined("yunet", yunet())(IMAGE, SETTINGS)


# dlib's frontal detector from the user's cache: the same answers, and nothing but the known file is read.


dlib = pytest.importorskip("dlib")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dpveil" / NAME


def decoded_none(*args: Any) -> Any:
    raise AssertionError("decoded, though the file was there")


def test_the_kept_file_gives_the_same_answers(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo = data.astronaut()
    first = frontal_detector().run(photo, 0, -1.0)
    assert sha256(kept.read_bytes()).hexdigest() == SHA256
    assert [path.name for path in kept.parent.iterdir()] == [NAME]
    monkeypatch.setattr(dlib, "get_frontal_face_detector", decoded_none)
    assert frontal_detector().run(photo, 0, -1.0) == first
    assert len(first[0]) > 0


@pytest.mark.parametrize("content", [b"", b"anything", b"\0" * 4096])
def test_another_file_is_not_read_and_is_written_anew(
    kept: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.parent.mkdir()
    kept.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(dlib, "fhog_object_detector", None)
        frontal_detector()
    assert sha256(kept.read_bytes()).hexdigest() == SHA256
