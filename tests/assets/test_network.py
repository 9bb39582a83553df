"""Networks of fixed shapes: ours run in this process, others in one of their own, with the same numbers."""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage import data

from dpveil.assets import confined_networks, networks
from dpveil.assets.confined_networks import Confined, first_output
from dpveil.assets.engines import NAME, SHA256, frontal_detector
from dpveil.assets.file_reference import Reference
from dpveil.assets.networks import Network
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
    monkeypatch.setattr(networks, "OURS", frozenset())
    other = Network(ours.contents, ours.takes, ours.gives, ours.job)
    assert not other.is_ours
    assert (other(given) == here).all()
    assert (pickle.loads(pickle.dumps(other))(given) == here).all()  # noqa: S301  ours


def test_a_network_above_the_limit_is_refused_unless_it_may_be_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(networks, "MOST_NETWORK_BYTES", len(repainter()) - 1)
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


GIVEN = np.linspace(0, 1, 3 * 32 * 32, dtype=np.float32).reshape(SHAPE)


def test_it_gives_what_this_process_would_and_outlives_its_child() -> None:
    network = Confined("alone", repainter())
    here = first_output(repainter(), GIVEN)
    assert (network(GIVEN) == here).all()
    [(_, child)] = network.pool._idle
    with pytest.raises(ModelError, match="does not run"):
        network(GIVEN[:, :1])
    assert [one for _, one in network.pool._idle] == [child]
    child.process.kill()
    child.process.wait()
    assert (network(GIVEN) == here).all()
    assert (pickle.loads(pickle.dumps(network))(GIVEN) == here).all()  # noqa: S301


def test_what_a_network_gives_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_networks, "MOST_OUTPUT_BYTES", 4 * GIVEN.size - 1)
    with pytest.raises(ModelError, match="ends the process"):
        Confined("alone", repainter())(GIVEN)


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
