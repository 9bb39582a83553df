"""Steps that follow a release: they see one region of released pixels, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpveil
from dpveil import verify
from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.assets.trained_files import save
from dpveil.core.certificate import parse_certificate
from dpveil.errors import InvalidParameter, ModelError, UnknownName
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse, step_from_certificate
from dpveil.postprocessing.steps import JOB, STEPS, Denoiser, DenoiserNetwork, GaussianBlur, Median
from tiny_onnx import encoder, mixing, repainter

FILTERS = [name for name in STEPS if name != "denoiser"]
"""Steps with a number; the network has tests of its own."""
SHAPES = [(1, 1, 1), (1, 1, 3), (1, 7, 3), (7, 1, 1), (2, 2, 3), (31, 17, 1), (16, 24, 3)]
USUAL = {"epsilon": 50, "block": 3, "neighbourhood": 1}


def speckled(shape, seed=1):
    words = SeededBits(seed).words(int(np.prod(shape)))
    return (words >> np.uint64(56)).astype(np.uint8).reshape(shape)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_keep_shape_type_and_input(name, shape):
    image = speckled(shape)
    before = image.copy()
    out = parse(name)(image)
    assert out.shape == shape
    assert out.dtype == np.uint8
    assert np.array_equal(image, before)
    flat = np.full(shape, 77, np.uint8)
    assert np.abs(parse(name)(flat).astype(int) - 77).max() <= 1


@pytest.mark.parametrize("name", FILTERS)
def test_steps_smooth_each_channel_by_itself(name):
    image = 100 + speckled((40, 40, 3)) // 16
    image[:, :, 1] = 90
    out = parse(STEPS[name].usual)(image).astype(int)
    assert np.abs(out[:, :, 1] - 90).max() <= 1
    for k in (0, 2):
        variation = [np.abs(np.diff(shown[:, :, k].astype(int), axis=0)).mean() for shown in (image, out)]
        assert variation[1] < variation[0]
        alone = parse(STEPS[name].usual)(image[:, :, k : k + 1])
        assert np.array_equal(alone[:, :, 0], out[:, :, k])


@pytest.mark.parametrize("name", FILTERS)
def test_words_are_read_back_exactly(name):
    step = STEPS[name]
    assert parse(step.usual).description == step.usual
    assert parse(f" {step.usual} ") == parse(step.usual) == parse(parse(step.usual)) == parse(name)
    assert step.summary


@pytest.mark.parametrize(
    "text",
    [
        *(f"gaussian:{amount}" for amount in ("", "0", "-1", "nan", "1001", "1:2")),
        *(f"median:{side}" for side in ("", "1", "2", "3.0", "17", "three")),
    ],
)
def test_numbers_out_of_range_are_refused(text):
    with pytest.raises(InvalidParameter) as refusal:
        parse(text)
    assert refusal.value.hint


def test_an_unknown_step_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'gaussian'"):
        parse("gausian:1")
    with pytest.raises(UnknownName):
        parse("")


def test_steps_follow_the_draw_in_their_order_within_each_region():
    photo = dpveil.Photo(speckled((40, 50, 3)))
    box, steps = "5,6,20,21", ["gaussian:2", "median:3"]
    plain = dpveil.obfuscate(photo, "dp-pix", regions=box, bits=SeededBits(4), **USUAL)
    made = dpveil.obfuscate(photo, "dp-pix", regions=box, bits=SeededBits(4), post_processing=steps, **USUAL)
    inside = plain.image[6:27, 5:25]
    assert np.array_equal(made.image[6:27, 5:25], Median(3)(GaussianBlur(2)(inside)))
    assert not np.array_equal(made.image[6:27, 5:25], GaussianBlur(2)(Median(3)(inside)))
    outside = np.ones((40, 50), bool)
    outside[6:27, 5:25] = False
    assert np.array_equal(made.image[outside], photo.image[outside])
    assert made.certificate.post_processing == ("gaussian:2", "median:3")
    assert made.certificate.guarantees == plain.certificate.guarantees


def test_the_seam_reads_no_protected_pixel_and_no_neighbour():
    """The same draw on photos that differ outside the region gives the same region: steps end at its edge."""
    first = speckled((40, 50, 3))
    second = first.copy()
    second[:6] = 255 - second[:6]
    regions = [
        dpveil.obfuscate(
            photo, "dp-pix", regions="5,6,20,21", bits=SeededBits(4), post_processing="gaussian:5", **USUAL
        ).image[6:27, 5:25]
        for photo in (first, second)
    ]
    assert np.array_equal(regions[0], regions[1])


def test_certificates_state_the_steps_and_verify_checks_them(tmp_path):
    photo = speckled((20, 20, 3))
    release = dpveil.obfuscate(photo, "dp-pix", post_processing=["median"], **USUAL)
    image, beside = release.save(tmp_path / "a.png")
    assert dpveil.verify(image).status == "consistent"
    assert '"median:3"' in beside.read_text(encoding="utf-8")
    edited = parse_certificate(beside.read_text(encoding="utf-8"))
    for steps in (("median:03",), ("sharpen:1",), ("median",)):
        object.__setattr__(edited, "post_processing", steps)
        beside.write_text(edited.to_text(), encoding="utf-8")
        assert dpveil.verify(image).status == "inconsistent"


# The network that guesses a face under noise: made ones here, that change levels in a known way.


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
    out = Denoiser(network(1.0))(ramp)
    assert out.shape == ramp.shape
    assert np.abs(out.astype(int) - ramp).max() <= 6


def test_certificates_name_the_network_by_its_hash_and_verify(file: Path, tmp_path: Path) -> None:
    photo = dpveil.Photo(np.full((40, 40, 3), 90, np.uint8))
    out = tmp_path / "out.png"
    release = dpveil.obfuscate(
        photo,
        "dp-pix",
        epsilon=50,
        block=4,
        neighbourhood=1,
        post_processing=f"denoiser:{file}",
        regions="4,4,30,30",
        bits=SeededBits(1),
    )
    (step,) = release.certificate.post_processing
    assert step == f"denoiser:denoiser sha256:{network().digest}"
    release.save(out)
    file.unlink()
    assert verify(out).status == "consistent"
    told = parse_certificate(Path(f"{out}.certificate.json").read_text(encoding="utf-8"))
    assert told.post_processing == (step,)


def test_a_certificate_opens_no_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil.assets.file_reference._stamp", lambda path: pytest.fail(f"opened {path}"))
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
        (b"no network", JOB),
        (mixing(side=SIDE), JOB),
        (encoder(np.zeros((4, 3, SIDE, SIDE), np.float32), np.zeros(4)), JOB),
        (repainter(side=SIDE, bias=float("nan")), "not finite"),
        (repainter(side=SIDE, bias=7.0), "far off"),
        (repainter(side=SIDE + 16), JOB),
    ],
)
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
