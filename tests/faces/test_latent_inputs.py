"""What a decoder is told beside a private code: its cost, its draw, and that nothing else is told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dpveil.catalogue import build
from dpveil.codecs import GAN
from dpveil.errors import InvalidParameter, UnknownName, UsageError
from dpveil.faces import Latent
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.latent import DecoderInputs
from dpveil.mechanisms.latent import LatentMechanism
from dpveil.noise.bits import SeededBits
from dpveil_audit.faces.gallery import reference

sys.path.append(str(Path(__file__).parent.parent / "codecs"))
from made_gan import SIDE, made

ZEROS = {name: f"{name} 12 sha256:" + 64 * "0" for name in ("gan", "upconv", "pca")}
MODEL = "attributes sha256:" + 64 * "0"
SIZE = {"height": 90, "width": 70, "channels": 3}
FAILURE = 1e-10
MALE, FEMALE = np.zeros((1, SIDE, SIDE, 3), np.uint8), np.full((1, SIDE, SIDE, 3), 255, np.uint8)


class ByLight:
    """Reads a light face as female."""

    values = VALUES

    def read(self, crops: np.ndarray) -> dict[str, np.ndarray]:
        assert crops.shape[1:] == (128, 128, 3)
        return {"gender": (crops.mean(axis=(1, 2, 3)) > 128).astype(np.int64)}


def method(attributes: object = "gender=1", **given: object) -> Latent:
    return Latent(
        epsilon=1, codec=made(), attributes=attributes, model=reference("attributes", ByLight()), **given
    )


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder shows what it is told, and nothing else."""

    def render(self: GAN, codes: np.ndarray, *, gender: float) -> np.ndarray:
        return np.full((len(codes), *self.canvas), 128 + 50 * gender, np.uint8)

    monkeypatch.setattr(GAN, "render", render)


def told_female(crops: np.ndarray) -> np.ndarray:
    assert set(np.unique(crops)) <= {28, 228}
    return crops[:, 0, 0, 0] > 128


@pytest.mark.parametrize(
    ("kind", "attributes", "epsilon"),
    [
        ("gan", "gender=2", 3),
        ("upconv", "gender=2,smile=0.5", "3.5"),
        ("gan", "gender=female", 1),
        ("pca", "none", 1),
    ],
)
def test_budgets_add_to_that_of_the_code(kind, attributes, epsilon) -> None:
    own = build("latent", {"epsilon": 1, "codec": ZEROS[kind], "attributes": attributes, "model": MODEL})
    assert str(own.guarantee(**SIZE)) == f"{epsilon}-DP, latent-cell"
    stated = own.parameters()
    again = Latent.stated(stated)
    assert again.parameters() == stated
    assert again.guarantee(**SIZE) == own.guarantee(**SIZE)
    assert stated.get("attributes", "none") == attributes
    assert stated.get("model") == {"none": None, "gender=female": "none"}.get(attributes, MODEL)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"codec": ZEROS["pca"]}, "pca can be told"),
        ({"attributes": "gender"}, "has no budget"),
        ({"attributes": "age=1"}, "gan can be told"),
        ({"attributes": "smile=1"}, "gan can be told"),
        ({"epsilon": None, "rho": 1}, "cannot be added to a zcdp guarantee"),
        ({"mechanism": "croft-metric", "metric": "box-mean"}, "cannot be added to a metric guarantee"),
        ({"attributes": "gender=0"}, "gender"),
    ],
)
def test_what_cannot_be_told_is_refused(given, words) -> None:
    usual = {"epsilon": 1, "codec": ZEROS["gan"], "attributes": "gender=1", "model": MODEL}
    with pytest.raises(InvalidParameter, match=words) as refused:
        Latent(**usual | given)
    assert refused.value.hint


def test_unknown_attributes_and_missing_models_are_refused() -> None:
    with pytest.raises(UnknownName, match="attribute"):
        Latent(epsilon=1, codec=ZEROS["gan"], attributes="sex=1")
    with pytest.raises(UsageError, match="to keep gender"):
        Latent(epsilon=1, codec=ZEROS["gan"], attributes="gender=1", model="none")
    ageing = method()
    object.__setattr__(ageing.model.held, "values", {"gender": ("female", "male")})
    with pytest.raises(InvalidParameter, match="not what the model reads"):
        ageing.prepare(**SIZE)


@pytest.mark.usefixtures("plain")
def test_a_value_of_the_user_is_shown_and_reads_nothing() -> None:
    for word in ("male", "female"):
        own = Latent(epsilon=1, codec=made(), attributes=f"gender={word}", model=MODEL)
        assert own.set_by_user == (f"gender={word}",)
        assert own.parameters()["model"] == "none"
        shown = own.release(np.concatenate([MALE, FEMALE]), bits=SeededBits(1))
        assert told_female(shown).tolist() == [word == "female"] * 2


@pytest.mark.usefixtures("plain")
def test_what_is_read_is_released_with_the_probability_of_its_budget() -> None:
    """A decoder that is told what was read shows it always; one that ignores the budget, too often."""
    count, kept = 400, np.e**1 / (np.e**1 + 1)
    low, high = binom.ppf([FAILURE, 1 - FAILURE], count, kept)
    assert high < count
    for crop, female in ((MALE, False), (FEMALE, True)):
        shown = method().release(np.repeat(crop, count, axis=0), bits=SeededBits(3))
        assert low <= (told_female(shown) == female).sum() <= high
    mixed = np.concatenate([MALE, FEMALE, FEMALE, MALE, FEMALE, FEMALE])
    sure = method("gender=25").release(mixed, bits=SeededBits(3))  # 6·e^-25 is 8·10^-11
    assert told_female(sure).tolist() == [False, True, True, False, True, True]


def test_a_release_is_a_function_of_code_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(2).normal(size=(1, 12))
    monkeypatch.setattr(LatentMechanism, "release", lambda self, own, space, *, bits: codes)
    monkeypatch.setattr("dpveil.faces.latent.likely", lambda codes, *rest, **more: codes)
    seen = []
    for answer in (0, 1):
        monkeypatch.setattr(DecoderInputs, "answers", lambda *given, at=answer: {"gender": np.array([at])})
        one, two = (method().release(crop, bits=SeededBits(n)) for n, crop in enumerate((MALE, FEMALE)))
        assert np.array_equal(one, two)
        seen.append(one)
    assert not np.array_equal(*seen)


def test_every_face_is_decoded_with_its_own_answer() -> None:
    codec, codes = made(), np.random.default_rng(2).normal(size=(6, 12))
    answers = {"gender": np.array([0, 1, 1, 0, 1, 0])}
    together = DecoderInputs((("gender", "male"),), type(codec)).decoded(codec, codes, answers)
    for row, answer in enumerate(answers["gender"]):
        alone = codec.render(codes[[row]], gender=4.0 * answer - 2)
        assert np.array_equal(together[[row]], alone)
    assert np.array_equal(DecoderInputs((), type(codec)).decoded(codec, codes, {}), codec.decode(codes))
