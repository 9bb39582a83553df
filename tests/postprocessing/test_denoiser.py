"""The network that guesses a face under noise: made ones here, that change levels in a known way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpveil
from dpveil import verify
from dpveil.assets import Card, save
from dpveil.assets.network import Network
from dpveil.core.certificate import parse_certificate
from dpveil.errors import InvalidParameter, ModelError, UnknownName
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import JOB, Denoiser, DenoiserNetwork, parse, step_from_certificate
from tiny_onnx import encoder, mixing, repainter

SIDE = 32
SHAPE = (1, 3, SIDE, SIDE)
CARD = Card("denoiser", "made by a test", "any", 0)
UNKNOWN = "denoiser:denoiser sha256:" + 64 * "7"


def network(gain: float = 0.5, bias: float = 0.0) -> DenoiserNetwork:
    return DenoiserNetwork(Network(repainter(side=SIDE, gain=gain, bias=bias), SHAPE, SHAPE, JOB), SIDE, CARD)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(network(), tmp_path / "mine.safetensors")
    return tmp_path / "mine.safetensors"


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 1, 3), (32, 32, 3), (31, 70, 1), (200, 150, 3)], ids=str)
def test_levels_of_any_region_go_through_the_network(shape: tuple[int, int, int]) -> None:
    image = np.full(shape, 28, np.uint8)
    image.flags.writeable = False
    out = Denoiser(network())(image)
    assert out.shape == shape
    assert out.dtype == np.uint8
    assert np.abs(out.astype(int) - 78).max() <= 1  # (28 - 127.5) / 2 + 127.5
    assert (Denoiser(network(bias=9.0))(image) == 255).all()


def test_large_regions_are_averaged_and_small_ones_enlarged() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (320, 320, 3), np.uint8)
    assert Denoiser(network(1.0))(noise).std() < 0.2 * noise.std()
    ramp = np.tile(np.arange(0, 160, 10, dtype=np.uint8)[None, :, None], (16, 1, 3))
    assert np.abs(Denoiser(network(1.0))(ramp).astype(int) - ramp).max() <= 6


def test_certificates_name_the_network_by_its_hash_and_verify(file: Path, tmp_path: Path) -> None:
    photo = dpveil.Photo(np.full((40, 40, 3), 90, np.uint8))
    out = tmp_path / "out.png"
    release = dpveil.obfuscate(
        photo, "dp-pix", epsilon=50, block=4, neighbourhood=1, post_processing=f"denoiser:{file}",
        regions="4,4,30,30", bits=SeededBits(1),
    )  # fmt: skip
    (step,) = release.certificate.post_processing
    assert step == f"denoiser:denoiser sha256:{network().digest}"
    release.save(out)
    file.unlink()
    assert verify(out).status == "consistent"
    told = parse_certificate(Path(f"{out}.certificate.json").read_text(encoding="utf-8"))
    assert told.post_processing == (step,)


def test_a_certificate_opens_no_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil.assets.reference._stamp", lambda path: pytest.fail(f"opened {path}"))
    assert step_from_certificate(UNKNOWN).description == UNKNOWN
    files = [f"{before}denoiser:{file}" for before in ("", " ", "\t", "\n")]
    for text in (
        *files,
        "denoiser:default",
        "denoiser:/etc/passwd",
        "denoiser:pca 9 sha256:00",
        "denoiser",
        "denoiser:",
    ):
        with pytest.raises((InvalidParameter, UnknownName)):
            step_from_certificate(text)
    assert step_from_certificate("median:3") == parse("median:3")


@pytest.mark.parametrize(
    ("contents", "match"),
    [
        (b"no network", JOB), (mixing(side=SIDE), JOB),
        (encoder(np.zeros((4, 3, SIDE, SIDE), np.float32), np.zeros(4)), JOB),
        (repainter(side=SIDE, bias=float("nan")), "not finite"), (repainter(side=SIDE, bias=7.0), "far off"),
        (repainter(side=SIDE + 16), JOB),
    ],
)  # fmt: skip
def test_files_of_something_else_are_refused(contents: bytes, match: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.safetensors"
    save(DenoiserNetwork(Network(contents, SHAPE, SHAPE, JOB), SIDE, CARD), path)
    with pytest.raises(ModelError, match=match):
        parse(f"denoiser:{path}")


def test_pictures_of_impossible_sides_are_refused() -> None:
    tensors = network().tensors()
    for side in (0, 33, 512, -32):
        with pytest.raises(ModelError, match="pixels"):
            DenoiserNetwork.of_file({"side": side}, tensors, CARD)
