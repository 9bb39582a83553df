"""A release in another pose: the same draw, nothing of the original, and a certificate that says so."""

from __future__ import annotations

import gc
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from skimage.data import astronaut

import dpveil
from dpveil.codecs import GAN
from dpveil.codecs.network_codecs import OBEYED, WHOLE
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.faces import Latent, heads
from dpveil.faces.geometry.landmarks import Landmarks
from dpveil.noise.bits import SeededBits

sys.path += [str(Path(__file__).parent.parent / folder) for folder in ("codecs", "faces")]
from made_gan import made

METHOD = {"placing": "box"}


def photo() -> np.ndarray:
    return np.asarray(astronaut())[:300, 100:400].copy()


def method(**given: object) -> Latent:
    return Latent(epsilon=1, codec=made(), **METHOD, **given)


def release(image: np.ndarray, regions: object = Box(77, 65, 92, 115), **given: object) -> dpveil.Release:
    return dpveil.obfuscate(image, method(**given), regions=[regions], bits=SeededBits(5))


@pytest.mark.parametrize("regions", [Box(77, 65, 92, 115), "whole"])
def test_another_pose_is_another_picture_of_the_same_face(regions) -> None:
    first = release(photo(), regions)
    side, again = first.render((20, 0)), first.render((20, 0)).render((-20, 5))
    assert (side.image != first.image).any()
    assert (again.image == first.render((-20, 5)).image).all(), "a rendering starts from the draw"
    assert (side.image == release(photo(), regions).render((20, 0)).image).all(), "nothing is drawn"
    box = first.certificate.regions[0].box.slices
    for one in (side, again):
        outside = np.ones(first.image.shape[:2], np.bool_)
        outside[box] = False
        assert (one.image[outside] == first.image[outside]).all()
        assert not one.image.flags.writeable


def test_a_rendering_is_a_function_of_code_and_pose(monkeypatch) -> None:
    """Two photos that differ under the region, and equal codes."""
    one, two = photo(), photo()
    two[80:180, 80:165] = 255 - two[80:180, 80:165]
    at = np.linspace(-1, 1, made().length)[None]
    monkeypatch.setattr(Latent, "_released", lambda *_: (at, {}))
    pictures = [release(each).render((-15, 5)).image for each in (one, two)]
    assert (pictures[0] == pictures[1]).all()


def test_a_release_holds_nothing_of_the_original() -> None:
    """Walks all that a release refers to: no array holds the face, as pixels or as a crop."""
    image = photo()
    own = release(image)
    face = image[75:170, 85:160]
    seen, queue = set(), [own]
    while queue:
        one = queue.pop()
        if id(one) in seen or isinstance(one, type) or type(one).__name__ == "module":
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray) and one.shape[:2] == image.shape[:2]:
            assert (one[75:170, 85:160] != face).mean() > 0.5
        assert not isinstance(one, Photo)
        held = gc.get_referents(one)
        queue += [each for each in held if not (isinstance(each, dict) and "__builtins__" in each)]
    assert any(isinstance(each, Latent) for each in gc.get_objects() if id(each) in seen)


def test_the_decoder_is_told_more_than_it_obeys_and_no_more_than_it_bears(monkeypatch) -> None:
    told = []
    own = made()
    rendered = GAN.render

    def render(self: GAN, codes: np.ndarray, **given: float) -> np.ndarray:
        told.append(given)
        return rendered(self, codes, **given)

    monkeypatch.setattr(GAN, "render", render)
    first = release(photo(), "whole", attributes="gender=male")
    first.render((6, -6))
    first.render((30, -10))
    most = {"gender": -2.0}
    assert told[0] == most
    assert told[-2] == most | {"yaw": math.radians(6) / OBEYED, "pitch": math.radians(-6) / OBEYED}
    assert told[-1] == most | {"yaw": WHOLE, "pitch": pytest.approx(-math.radians(10) / OBEYED)}
    assert set(own.turning(0, 0).values()) == {0}


def test_a_head_is_turned_to_the_yaw(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        heads,
        "recombine",
        lambda image, places, *_, **given: asked.append((places, given)) or image,
    )
    plan = dpveil.plan(photo(), method(), regions=[Box(77, 65, 92, 115)])
    marks = Landmarks(np.zeros((5, 2)), 0.0, 1.0)
    plan.placement.places = [replace(p, landmarks=marks, exact=p.pose) for p in plan.placement.places]
    plan.release(bits=SeededBits(5)).render((20, 0))
    (places, plain), (_, turned) = asked
    assert (plain["yaw"], turned["yaw"]) == (None, 20)
    assert [(one.landmarks, one.exact) for one in places] == [(None, None)], "both are private"


def test_the_certificate_says_that_it_is_the_same_draw(tmp_path) -> None:
    first = release(photo())
    again = first.render((20, 0)).render((-10, 5))
    assert (first.certificate.pose, again.certificate.pose) == (None, (-10, 5))
    assert again.certificate.warnings[:-1] == first.certificate.warnings
    assert again.certificate.composition == first.certificate.composition
    again.save(tmp_path / "again.png")
    assert dpveil.verify(tmp_path / "again.png").status == "consistent"
