"""Faces in photos: where they are put, what is replaced, and that nothing protected is read later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from facespace_made import FACE, SIDE, Flat, astronaut, codec
from PIL import Image

import dpveil
from dpveil import Photo
from dpveil.assets.trained_files import save
from dpveil.catalogue import method_from_certificate
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import NoRegion, RegionError
from dpveil.faces import Attributes
from dpveil.faces.head_placement import CUT_NOTE, HeadPlacement
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Faces
from dpveil.release.verification import verify
from dpveil_audit.faces.made_heads import made_heads

pytest.importorskip("dlib")


@pytest.fixture(scope="module")
def photo() -> Photo:
    return Photo(astronaut())


def whole_heads(level: int | None = None, protect: str = "head") -> Attributes:
    """The method that shows heads of a gallery, with all levels the same if one is given."""
    gallery = made_heads()
    if level is not None:
        view = gallery.view(0, 0)
        gallery.__dict__["view"] = lambda *_: replace(view, levels=np.full_like(view.levels, level))
    return Attributes(attributes="none", gallery=gallery, protect=protect)


def faces_of(release: dpveil.Release) -> list[tuple[str, Box]]:
    return [(record.label, record.box) for record in release.certificate.regions]


def test_another_face_takes_the_place_and_the_outside_stays(photo: Photo) -> None:
    release = dpveil.obfuscate(photo, whole_heads(level=90), bits=SeededBits(1))
    ((label, box),) = faces_of(release)
    assert label == "face 1"
    inside = np.zeros(photo.image.shape[:2], bool)
    inside[box.slices] = True
    assert np.array_equal(release.image[~inside], photo.image[~inside])
    middle = release.image[box.y + box.h // 2, box.x + box.w // 2].astype(int)
    assert np.abs(middle - 90).max() <= 3
    assert not np.array_equal(release.image[inside], photo.image[inside])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("protect", ["face", "head", "box"])
def test_after_the_draw_no_protected_pixel_is_read(photo: Photo, protect: str, channels: int) -> None:
    """With the places fixed, no change of the protected pixels changes the release by a bit."""
    photo = Photo(photo.image[..., :channels].copy())
    method = Flat() if protect == "face" else whole_heads(protect=protect)
    there = [Region(Box(*map(int, box.split(",")))) for box in (FACE, "300,240,60,70")]
    heads = method.place(photo, there)
    assert isinstance(heads, HeadPlacement)
    first = heads.draw(SeededBits(1), ())
    hidden = np.zeros(photo.image.shape[:2], bool)
    for region in heads.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    assert np.array_equal(first[~hidden], photo.image[~hidden])
    for levels in (0, 255, np.random.default_rng(5).integers(0, 256, photo.image.shape)):
        changed = np.where(hidden[..., None], levels, photo.image).astype(np.uint8)
        heads.photo = Photo(changed)
        assert np.array_equal(heads.draw(SeededBits(1), ()), first)
    heads.photo = Photo(255 - photo.image)  # the check can fail: what is outside does show
    assert not np.array_equal(heads.draw(SeededBits(1), ()), first)


def test_the_method_sees_the_aligned_face(photo: Photo) -> None:
    Flat.seen.clear()
    dpveil.obfuscate(photo, Flat(), bits=SeededBits(1))
    ((crop,),) = Flat.seen
    assert crop.shape == (SIDE, SIDE, 3)
    left, right = crop[int(0.30 * SIDE), [int(0.30 * SIDE), int(0.69 * SIDE)]].mean(axis=1)
    cheeks = crop[int(0.55 * SIDE), [int(0.25 * SIDE), int(0.72 * SIDE)]].mean()
    assert max(left, right) < cheeks, "eyes are darker than cheeks where the frame has them"


def test_the_whole_photo_shows_the_released_face_and_nothing_else(photo: Photo) -> None:
    release = dpveil.obfuscate(photo, Flat(), regions="whole", bits=SeededBits(1))
    assert (release.image == 90).all()
    assert release.certificate.guarantees[0].scope.in_the_clear == (
        "the photo's size in pixels and its number of channels",
        "how long finding, aligning and drawing the face took, which depends a little on the photo",
    )


def test_a_portrait_finds_the_face_but_does_not_tell(photo: Photo) -> None:
    Flat.seen.clear()
    turned = Photo(np.ascontiguousarray(photo.image[:, ::-1]))
    blank = Photo(np.zeros_like(photo.image))
    said = {
        dpveil.obfuscate(one, Flat(), regions="whole", bits=SeededBits(1)).certificate.to_text()
        for one in (photo, turned, blank)
    }
    assert len(said) == 1
    face, _, nothing = (seen[0] for seen in Flat.seen)
    assert face.std() > 20
    assert not nothing.any()


def test_a_portrait_is_released_whatever_goes_wrong(photo: Photo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal would show one thing about the photo that nobody paid for."""
    import cv2

    def fails(*_: object, **__: object) -> None:
        raise cv2.error("colours of one kind only")

    monkeypatch.setattr("dpveil.faces.head_placement.place", fails)
    assert (dpveil.obfuscate(photo, Flat(), regions="whole", bits=SeededBits(1)).image == 90).all()
    with pytest.raises(cv2.error):
        dpveil.obfuscate(photo, Flat(), regions=FACE, bits=SeededBits(1))


def test_no_face_no_release(photo: Photo) -> None:
    blank = Photo(np.full((200, 200, 3), 128, np.uint8))
    with pytest.raises(NoRegion):
        dpveil.obfuscate(blank, Flat())
    whole = dpveil.obfuscate(blank, Flat(), if_none="whole", bits=SeededBits(1))
    assert (whole.image == 90).all()
    assert not dpveil.obfuscate(blank, Flat(), if_none="copy").certificate.guarantees


def test_a_box_without_a_face_is_refused_or_placed_by_the_box(photo: Photo) -> None:
    corner = "400,400,80,100"
    with pytest.raises(RegionError, match="landmarks"):
        dpveil.obfuscate(photo, Flat(placing="landmarks"), regions=corner)
    for placing in ("auto", "box"):
        method = replace(whole_heads(), placing=placing)
        release = dpveil.obfuscate(photo, method, regions=corner, bits=SeededBits(1))
        ((_, box),) = faces_of(release)
        assert box.x <= 400
        assert box.y <= 400
        assert box.x + box.w >= 480
        assert box.y + box.h >= 500


@pytest.mark.parametrize("height", [10, 24])
def test_tiny_faces_and_faces_at_the_border_are_released(photo: Photo, height: int) -> None:
    small = Image.fromarray(photo.image).resize((512 * height // 108,) * 2, Image.Resampling.LANCZOS)
    tiny = np.asarray(small)
    box = f"{177 * height // 108},{65 * height // 108},{88 * height // 108},{height}"
    assert dpveil.obfuscate(tiny, Flat(), regions=box, bits=SeededBits(1)).image.shape == tiny.shape
    cut = np.ascontiguousarray(photo.image[:, 215:])
    release = dpveil.obfuscate(cut, Flat(), regions="0,65,50,108", bits=SeededBits(1))
    assert faces_of(release)[0][1].x == 0


@pytest.mark.parametrize(
    ("one", "other", "reads"),
    [
        ((157, 148, 80, 86), (237, 128, 146, 122), True),
        ((138, 148, 139, 126), (278, 128, 38, 33), True),
        ((125, 156, 41, 49), (175, 136, 138, 138), True),
        ((146, 119, 85, 97), (244, 99, 55, 82), True),
        ((146, 119, 85, 97), (290, 99, 55, 82), False),
    ],
)
def test_faces_that_are_read_for_each_other_are_noted(photo: Photo, one, other, reads: bool) -> None:
    """Crops are cut where the faces are, and not where their cells are, and filters read around them."""
    origins = [Origin("face", number=n, found=True) for n in (1, 2)]
    found = [Region(Box(*box), origin=origin) for box, origin in zip((one, other), origins, strict=True)]
    heads = Flat(placing="box").place(photo, found)
    assert isinstance(heads, HeadPlacement)
    assert not heads.regions[0].box.overlaps(heads.regions[1].box), "certificates would say so"
    different = []
    for n in (0, 1):
        changed = photo.image.copy()
        changed[heads.regions[1 - n].box.slices] ^= 255
        crops = [heads.places[n].crop(picture) for picture in (photo, Photo(changed))]
        different.append(not np.array_equal(*crops))
    assert any(different) == reads
    assert any("face 1 and face 2 are so near" in note for note in heads.notes) == reads


def test_a_jpeg_keeps_no_trace_around_the_head(photo: Photo, tmp_path: Path) -> None:
    Image.fromarray(photo.image).save(tmp_path / "a.jpg", quality=80)
    read = dpveil.read(tmp_path / "a.jpg")
    ((label, box),) = faces_of(dpveil.obfuscate(read, Flat(), bits=SeededBits(1)))
    assert label == "face 1, grown to the JPEG blocks"
    ((_, plain),) = faces_of(dpveil.obfuscate(Photo(read.image), Flat(), bits=SeededBits(1)))
    assert box.x < plain.x or box.y < plain.y or box.w > plain.w


def test_steps_follow_the_draw_on_released_crops(photo: Photo) -> None:
    plain = dpveil.obfuscate(photo, "latent", epsilon=50, codec=codec(), bits=SeededBits(1))
    soft = dpveil.obfuscate(
        photo, "latent", epsilon=50, codec=codec(), bits=SeededBits(1), post_processing="gaussian:3"
    )
    assert not np.array_equal(plain.image, soft.image)
    ((_, box),) = faces_of(plain)
    outside = np.ones((512, 512), bool)
    outside[box.slices] = False
    assert np.array_equal(soft.image[outside], photo.image[outside])


@pytest.mark.parametrize("settings", [{}, {"regions": "whole"}, {"regions": FACE}])
def test_a_release_verifies_without_the_model_and_an_edited_one_does_not(
    photo: Photo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings
) -> None:
    model = tmp_path / "model.safetensors"
    save(codec(), model)
    release = dpveil.obfuscate(photo, "latent", epsilon=50, codec=str(model), **settings)
    image, certificate = release.save(tmp_path / "out.png")
    model.unlink()
    assert verify(image).problems == ()
    text = certificate.read_text(encoding="utf-8")
    assert "model.safetensors" not in text
    document = json.loads(text)
    document["guarantees"][0]["epsilon"] = 5
    certificate.write_text(json.dumps(document), encoding="utf-8")
    assert verify(image).status == "inconsistent"


def test_certificates_name_the_gallery_by_its_hash(photo: Photo, tmp_path: Path) -> None:
    method = whole_heads()
    release = dpveil.obfuscate(photo, method, regions=FACE)
    told = release.certificate.parameters
    assert told["gallery"] == f"heads sha256:{made_heads().digest}"
    assert str(release.certificate.composition) == "0-DP, any-image"
    image, _ = release.save(tmp_path / "private.png")
    assert verify(image).problems == ()
    assert method_from_certificate("attributes", told).parameters() == method.parameters()


class Nameless(Step):
    """A step of a user, whose repr is its address in memory."""

    name = "nameless"
    usual = "nameless:1"
    summary = "does nothing"

    @property
    def description(self) -> str:
        return "nameless:1"

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return image


def test_a_release_does_not_depend_on_where_a_step_lies_in_memory() -> None:
    """Alone in its photo a head is before a backdrop, whose colour a number of the released head chooses."""
    photo, method = Photo(np.full((90, 80, 3), 128, np.uint8)), whole_heads(protect="box")
    steps = [Nameless() for _ in range(6)]
    made = [
        dpveil.obfuscate(photo, method, regions="10,10,60,70", bits=SeededBits(1), post_processing=[step])
        for step in steps
    ]
    assert len({release.image.tobytes() for release in made}) == 1


def test_from_a_given_box_alone_nothing_is_found(photo: Photo) -> None:
    release = dpveil.obfuscate(photo, Flat(placing="box"), regions=FACE, bits=SeededBits(1))
    (record,) = release.certificate.regions
    assert not record.found
    assert "which follow from" not in "; ".join(release.certificate.guarantees[0].scope.in_the_clear)
    (by_landmarks,) = dpveil.obfuscate(photo, Flat(), regions=FACE, bits=SeededBits(1)).certificate.regions
    assert by_landmarks.found


def test_beside_a_portrait_is_the_released_crop_made_soft(photo: Photo) -> None:
    rng = np.random.default_rng(3)
    crop = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)

    class Given(Flat):
        def _draw(self, crops, bits):
            return crop[None]

    wide = dpveil.obfuscate(photo.image[:200, :400], Given(), regions="whole", bits=SeededBits(1)).image
    middle, far = wide[:, 100:300], wide[:, :60]
    assert middle.std() > 40
    assert far.std() < 30, "stripes or mirror images, as sharp as the crop, lie beside it"
    assert abs(float(far.mean()) - float(crop.mean())) < 25


@pytest.mark.parametrize("protect", ["box", "head", "face"])
def test_an_excepted_face_stays_and_its_neighbours_are_cut(protect: str) -> None:
    crowd = np.ascontiguousarray(np.tile(astronaut()[17:257, 150:300], (1, 3, 1)))
    method = Flat() if protect == "face" else whole_heads(protect=protect)
    plan = dpveil.plan(crowd, method, regions=Faces(exclude=(2,)))
    kept = Faces(margin=0).detect(Photo(crowd))[1].box
    release = plan.release(bits=SeededBits(1))
    assert np.array_equal(release.image[kept.slices], crowd[kept.slices])
    assert not any(region.touches(kept) for region in plan.regions)
    hidden = np.zeros(crowd.shape[:2], bool)
    for region in plan.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    for one in (0, 2):
        box = Faces(margin=0).detect(Photo(crowd))[one].box
        assert hidden[box.slices].mean() > {"box": 0.99, "head": 0.8, "face": 0.65}[protect]
    assert np.array_equal(release.image[~hidden], crowd[~hidden])
    assert [region.mask is None for region in plan.regions] == [False, False]
    reaching = protect == "box"  # the others do not reach the face between them
    assert sum(CUT_NOTE in note for note in release.notes) == reaching
    assert not any(CUT_NOTE in warning for warning in release.certificate.warnings)
