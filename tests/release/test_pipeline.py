"""One photo from its regions to its certificate: what is paid, before what is drawn, and what is stated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.accounting.meaning import NONE
from dpveil.core.certificate import OTHERS, SEEDED, UNPROTECTED
from dpveil.core.photo import BlockGrid
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import (
    BudgetExceeded,
    DPVeilError,
    InvalidParameter,
    NoRegion,
    PhotoError,
    RegionError,
    UnknownName,
    UnsupportedRelation,
)
from dpveil.mechanisms.pixel import DPPix, PixelMethod
from dpveil.noise.bits import BitSource, SecureBits, SeededBits
from dpveil.regions import Finder
from dpveil.release.plan import choose_regions
from dpveil.release.words import CHANNELS, COUNT, LOW_STRENGTH, PLACE, TRACES


class Watched(BitSource):
    """Counts what it hands out."""

    def __init__(self):
        super().__init__()
        self.filled = 0

    def _first_key(self):
        return bytes(32)

    def fill(self, out):
        self.filled += out.size
        super().fill(out)


@pytest.fixture
def drawn(monkeypatch):
    """How many words every request for secure bits got."""
    counts, fill = [], SecureBits.fill

    def counted(self, out):
        counts.append(out.size)
        fill(self, out)

    monkeypatch.setattr(SecureBits, "fill", counted)
    return counts


@dataclass
class Book:
    """A ledger that remembers, and refuses above its limit."""

    limit: Fraction
    drawn: list | None = None
    seen: list = field(default_factory=list)

    def debit(self, subject, guarantee, key, *, again=False, covered=None, other_regions=False):
        if guarantee.epsilon > self.limit:
            raise BudgetExceeded(subject=subject, asked=guarantee.epsilon, left=self.limit)
        self.seen.append((guarantee, None if self.drawn is None else sum(self.drawn)))
        return Page()


@dataclass
class Page:
    """A debit in such a book."""

    files: list = field(default_factory=list)

    def stored(self, sha256):
        self.files.append(sha256)


class Nobody(Finder):
    """Finds nothing in any photo."""

    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


@dataclass(frozen=True, kw_only=True)
class Plain(PixelMethod):
    """Shows the region's top left level plus what was asked for: a probe, not a mechanism."""

    name = "plain"
    kind = "heuristic"
    summary = "probe"
    source = "this test"

    add: int = 0

    def guarantee(self, *, height, width, channels):
        return dpveil.Guarantee(
            kind="heuristic",
            broken_by=("looking",),
            relation=dpveil.Relation("any-image"),
            scope=dpveil.Scope("", ("top left pixel",)),
        )

    def noise_scale(self, *, height, width, channels):
        return 0.0

    def _draw(self, image, bits):
        return np.full_like(image, image[0, 0, 0] + self.add)


def ramp(height=20, width=24, channels=3):
    return (np.arange(height * width * channels) % 199).astype(np.uint8).reshape(height, width, channels)


def private(regions="whole", photo=None, bits=None, **more):
    settings = {"epsilon": 1, "block": 4, "neighbourhood": 16} | more
    given = ramp() if photo is None else photo
    return dpveil.obfuscate(given, "dp-pix", regions=regions, bits=bits or dpveil.SeededBits(1), **settings)


def test_pixels_outside_the_regions_stay_and_inside_go():
    release = private("4,8,8,4", epsilon="1e-6")
    changed = (release.image != ramp()).any(axis=2)
    inside = np.zeros((20, 24), bool)
    inside[8:12, 4:12] = True
    assert not changed[~inside].any()
    assert changed[inside].mean() > 0.9


def test_only_pixels_of_the_region_reach_the_output():
    other = ramp()
    other[8:12, 4:12] = 255 - other[8:12, 4:12]
    outside = np.ones((20, 24), bool)
    outside[8:12, 4:12] = False
    assert (private("4,8,8,4").image[outside] == private("4,8,8,4", photo=other).image[outside]).all()


def test_regions_read_the_original_and_are_pasted_in_order():
    photo = ramp(8, 8, 1)
    release = dpveil.obfuscate(photo, Plain(add=50), regions=["0,0,6,6", "2,2,6,6", (4, 4, 1, 1)])
    assert release.image[0, 0, 0] == photo[0, 0, 0] + 50
    assert release.image[2, 2, 0] == photo[2, 2, 0] + 50
    assert release.image[4, 4, 0] == photo[4, 4, 0] + 50
    assert release.image[7, 7, 0] == photo[2, 2, 0] + 50


def test_the_certificate_says_what_was_done():
    certificate = private(["4,8,8,4", "0,3,6,6"], epsilon=0.1).certificate
    assert [g.epsilon for g in certificate.guarantees] == [Fraction(1, 10)] * 2
    assert certificate.composition.epsilon == Fraction(1, 5)
    assert certificate.request == ("4,8,8,4", "0,3,6,6")
    assert certificate.parameters.items() >= {"epsilon": 0.1, "block": 4, "neighbourhood": 16}.items()
    first = certificate.guarantees[0].scope
    assert first.covers == "box 1: 8×4 pixels at 4,8, 3 channels"
    assert first.in_the_clear == (
        "position and size of the region",
        CHANNELS,
        "everything outside the region",
    )
    assert certificate.bits == "seeded"
    assert certificate.warnings[0] == SEEDED
    assert certificate.output is None


def test_a_mask_leaves_its_silhouette_in_the_clear_and_lowers_nothing():
    mask = np.zeros((20, 24), bool)
    mask[0, 0] = mask[-1, -1] = True
    release = private(mask, epsilon="1e-6")
    scope = release.certificate.guarantees[0].scope
    assert "the mask's silhouette" in scope.in_the_clear
    assert scope.covers == "mask: 24×20 pixels at 0,0, of which 2 are replaced, 3 channels"
    assert ((release.image != ramp()).any(axis=2) <= mask).all()


def test_regions_of_a_jpeg_grow_and_say_so():
    photo = dpveil.Photo(ramp(64, 64), BlockGrid(16, 16), notes=("its colour profile was applied",))
    release = private("20,20,4,4", photo=photo, epsilon=20)
    certificate = release.certificate
    assert certificate.guarantees[0].scope.covers.startswith(
        "box, grown to the JPEG blocks: 18×18 pixels at 15,15"
    )
    stored = [text for text in certificate.guarantees[0].scope.in_the_clear if "JPEG" in text]
    assert "quantisation tables" in stored[0]
    assert stored[0] in certificate.composition.scope.in_the_clear
    # what else was done to it is nobody else's business
    assert certificate.warnings == (SEEDED, LOW_STRENGTH[NONE])
    converted, grew = release.notes
    assert converted == "its colour profile was applied"
    assert grew.startswith("the box 20,20,4,4 became 15,15,18,18: whole JPEG blocks are replaced")


@pytest.mark.parametrize(("codec", "block", "margin"), [("WebP", 16, 8), ("HEIC", 64, 16), ("AVIF", 128, 16)])
def test_traces_that_prediction_spreads_are_named_in_the_clear(codec, block, margin):
    photo = dpveil.Photo(ramp(150, 150), BlockGrid(block, block, margin=margin, codec=codec))
    for box in ("20,20,4,4", "8,8,9,9"):
        certificate = private(box, photo=photo, epsilon=20).certificate
        assert TRACES.format(codec) in certificate.guarantees[0].scope.in_the_clear
        assert any(f"lossy {codec} may leave traces" in text for text in certificate.warnings)
    whole = private("whole", photo=photo, epsilon=20).certificate
    assert TRACES.format(codec) not in whole.guarantees[0].scope.in_the_clear
    assert whole.warnings == (SEEDED, LOW_STRENGTH[NONE])


def test_a_name_or_the_bytes_of_a_file_are_read(tmp_path):
    path = tmp_path / "a.jpg"
    Image.fromarray(ramp(64, 64)).save(path)
    for given in (path, str(path), path.read_bytes()):
        made = dpveil.plan(given, "fill", regions="20,20,4,4")
        assert made.photo.grid == dpveil.read(path).grid
        assert made.regions[0].origin.grown_to == "JPEG"
        assert np.array_equal(made.photo.image, dpveil.read(path).image)
    with Image.open(path) as picture, pytest.raises(InvalidParameter, match="give the name of its file"):
        dpveil.plan(picture, "fill")
    with pytest.raises(PhotoError, match="does not exist"):
        dpveil.obfuscate(tmp_path / "none.jpg", "fill")


def test_equal_bits_give_equal_releases_and_fresh_ones_do_not():
    assert (private().image == private().image).all()
    assert (private().image != private(bits=dpveil.SeededBits(2)).image).any()
    once, again = (dpveil.obfuscate(ramp(), "dp-pix", epsilon=1) for _ in range(2))
    assert (once.image != again.image).any()
    assert once.certificate.publishable


def test_the_ledger_is_debited_once_with_the_sum_before_any_draw(drawn):
    book = Book(Fraction(3), drawn)
    private(["0,0,8,8", "4,4,8,8"], bits=SecureBits(), epsilon=1.5, ledger=book, subject="album")
    [(guarantee, before)] = book.seen
    assert (guarantee.epsilon, before) == (3, 0)
    assert sum(drawn) > 0


def test_a_refused_debit_draws_nothing(drawn):
    with pytest.raises(BudgetExceeded, match="album has epsilon 1 left"):
        private(
            ["0,0,8,8", "4,4,8,8"], bits=SecureBits(), epsilon=1, ledger=Book(Fraction(1)), subject="album"
        )
    assert drawn == []


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"method": "dppix"}, UnknownName, "did you mean 'dp-pix'"),
        ({"method": "smudge"}, UnknownName, "choose from"),
        ({"method": 5}, UnknownName, "unknown method '5'"),
        ({"epsilon": None}, InvalidParameter, "epsilon is missing: there is no default"),
        ({"epsilon": 0}, InvalidParameter, "epsilon = 0 is not above 0"),
        ({"epsilon": float("nan")}, InvalidParameter, "epsilon = nan is not a finite number"),
        ({"blocks": 8}, InvalidParameter, "did you mean block"),
        ({"rho": 1}, InvalidParameter, "budget = 'epsilon and rho' is not a budget that dp-pix takes"),
        ({"block": 0}, InvalidParameter, "block = 0 is out of range"),
        ({"regions": "0,0,25,1"}, RegionError, "24 × 20 pixels"),
        ({"regions": "nowhere"}, UnknownName, "unknown regions 'nowhere'"),
        ({"regions": []}, NoRegion, "no region was chosen"),
        ({"regions": np.zeros((20, 24), bool)}, NoRegion, "no pixel set"),
        ({"regions": np.ones((20, 23), bool)}, RegionError, "the mask is 23 × 20 pixels"),
        ({"if_none": "ignore"}, InvalidParameter, "if_none = 'ignore' is unknown"),
        ({"photo": np.zeros((2, 2))}, InvalidParameter, "uint8"),
    ],
)
def test_bad_calls_are_one_clear_refusal_that_draws_nothing(change, error, words):
    bits = Watched()
    call = {"photo": ramp(), "method": "dp-pix", "epsilon": 1, "bits": bits} | change
    with pytest.raises(error) as caught:
        dpveil.obfuscate(**call)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert bits.filled == 0


def test_what_is_no_source_of_bits_is_refused_before_the_debit():
    book = Book(Fraction(9))
    with pytest.raises(InvalidParameter, match="bits = 'int' is not a source of bits"):
        dpveil.obfuscate(ramp(), "dp-pix", epsilon=1, bits=7, ledger=book, subject="album")
    assert book.seen == []


def test_guarantees_that_do_not_compose_are_refused_before_any_draw(monkeypatch):
    def odd(self, *, height, width, channels):
        relation = dpveil.Relation("any-image" if height > 4 else "database-record")
        return dpveil.Guarantee(kind="pure", epsilon=1, relation=relation, scope=dpveil.Scope(""))

    monkeypatch.setattr(DPPix, "guarantee", odd)
    bits = Watched()
    with pytest.raises(UnsupportedRelation):
        private(["0,0,8,8", "4,4,4,4"], bits=bits)
    assert bits.filled == 0


def test_where_nothing_is_found_nothing_is_released_unless_it_was_chosen():
    with pytest.raises(NoRegion):
        private(Nobody())
    whole = private(Nobody(), if_none="whole", epsilon="1e-6")
    assert whole.certificate.regions[0].label == "whole photo, as no region was found"
    assert whole.certificate.request == ("nobody",)
    assert (whole.image != ramp()).mean() > 0.9
    copy = private(Nobody(), if_none="copy")
    assert (copy.image == ramp()).all()
    assert copy.certificate.guarantees == ()
    assert copy.certificate.composition is None
    assert copy.certificate.warnings == (UNPROTECTED,)
    assert not copy.certificate.publishable


def test_heuristics_and_unknown_bits_are_not_for_publication():
    assert any("NO FORMAL GUARANTEE" in w for w in dpveil.obfuscate(ramp(), Plain()).certificate.warnings)
    certificate = private(bits=Watched()).certificate
    assert not certificate.publishable
    assert "nothing is known about 'unknown' bits" in certificate.warnings[0]


def test_a_choice_that_finds_nothing_never_undoes_another():
    both = ["4,8,8,4", Nobody()]
    with pytest.raises(NoRegion):
        private(both, if_none=None)
    release = private(both, if_none="copy", epsilon="1e-6")
    changed = (release.image != ramp()).any(axis=2)
    assert changed[8:12, 4:12].mean() > 0.9
    assert changed.sum() <= 8 * 4
    [record] = release.certificate.regions
    assert (record.label, release.certificate.request) == ("box", ("4,8,8,4", "nobody"))
    assert "NOT FOUND: nobody; what it would have protected is released as it is" in (
        release.certificate.warnings
    )
    whole = private(both, if_none="whole", epsilon="1e-6")
    assert [record.label for record in whole.certificate.regions] == ["whole photo, as no region was found"]
    assert (whole.image != ramp()).mean() > 0.9
    assert whole.certificate.composition.epsilon == Fraction("1e-6")


class Brightest(Finder):
    """A finder of one's own that looks at the pixels."""

    description = "brightest"

    def __call__(self, photo):
        y, x = np.unravel_index(photo.image.sum(2).argmax(), photo.image.shape[:2])
        box = dpveil.Box(int(min(x, 16)), int(min(y, 12)), 8, 8)
        return [dpveil.Region(box, origin=dpveil.Origin("brightest part"))]


def test_what_a_finder_saw_is_in_the_clear_unless_it_looked_at_nothing(tmp_path):
    certificate = private([Brightest(), "0,0,4,4"]).certificate
    seen, given = (guarantee.scope.in_the_clear for guarantee in certificate.guarantees)
    assert seen == (PLACE, COUNT, CHANNELS, "everything outside the region")
    assert "the guarantee compares photos in which the same is found" in PLACE
    assert given == ("position and size of the region", CHANNELS, "everything outside the region")
    assert [record.found for record in certificate.regions] == [True, False]
    image, _ = private(Brightest()).save(tmp_path / "a.png")
    assert dpveil.verify(image).status == "consistent"

    class Fixed(Brightest):
        data_dependent = False

    assert private(Fixed()).certificate.guarantees[0].scope.in_the_clear == given


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("dp-pix", {"epsilon": "1e-30"}),
        ("dp-pix", {"epsilon": "1e-400"}),
        ("dp-pix", {"epsilon": "1." + "3" * 600}),
        ("dp-pix-gaussian", {"rho": "1e-60"}),
        ("dp-pix-gaussian", {"rho": "1e-700"}),
        ("dct-gaussian", {"rho": "1e-60"}),
        ("dp-samp", {"epsilon": "1e-30", "clusters": 2, "private_clusters": True, "rate": "0.01"}),
        ("ssim-exponential", {"epsilon": "1e6", "levels": 256}),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused_before_the_debit(method, parameters, drawn):
    book = Book(Fraction(10**9), drawn)
    with pytest.raises(DPVeilError):
        dpveil.obfuscate(ramp(), method, ledger=book, subject="album", **parameters)
    assert book.seen == []
    assert drawn == []


FACES = ["0,0,8,8", "8,0,8,8", "16,0,8,8", "0,8,8,12", "12,8,12,12"]


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("dp-pix", {"epsilon": 20}), ("dp-pix", {"epsilon": 20, "delta": "1e-6"}), ("dp-pix", {"rho": 2}),
        ("dp-pix-gaussian", {"rho": 2}), ("dp-pix-gaussian", {"epsilon": 20, "delta": "1e-6"}),
    ],
)  # fmt: skip
def test_disjoint_regions_cost_what_one_neighbour_can_change(method, parameters, tmp_path):
    settings = {"block": 4, "neighbourhood": 24, **parameters}
    book = Book(Fraction(100)) if "epsilon" in parameters else None
    payer = {} if book is None else {"ledger": book, "subject": "album"}
    release = dpveil.obfuscate(ramp(), method, regions=FACES, **payer, **settings)
    total = release.certificate.composition
    assert all(getattr(total, name) == Fraction(value) for name, value in parameters.items())
    assert str(total) == str(release.certificate.guarantees[0])
    assert book is None or book.seen == [(total, None)]
    image, _ = release.save(tmp_path / "a.png")
    assert dpveil.verify(image).status == "consistent"
    touching = dpveil.obfuscate(ramp(), method, regions=[*FACES[:2], "15,0,8,8"], **settings)
    assert all(
        getattr(touching.certificate.composition, name) == 3 * Fraction(value)
        for name, value in parameters.items()
    )
    [text] = [text for text in touching.certificate.warnings if "overlap" in text]
    assert text == "box 2 and box 3 overlap: each reads the original, so their costs add"
    black = dpveil.obfuscate(ramp(), "fill", regions=[*FACES[:2], "15,0,8,8"])
    assert not any("overlap" in text for text in black.certificate.warnings)


def test_regions_that_a_neighbour_can_change_together_cost_more():
    """Four pixels fill two regions of two pixels each, and three fill one and a half."""
    for m, epsilon in ((2, 1), (4, 2), (100, 3)):
        total = private(["0,0,2,1", "2,0,2,1", "0,1,2,1"], neighbourhood=m).certificate.composition
        assert (total.epsilon, total.relation.m) == (epsilon, m)
    two_scales = private(["0,0,2,1", "0,4,4,4"], neighbourhood=9).certificate.composition
    assert two_scales.epsilon == 2  # the sum: noise of several scales has no better rule


# Requests of which not every part has to be found, and what certificates may say of them.


PHOTO = (np.arange(40 * 30 * 3) % 251).astype(np.uint8).reshape(30, 40, 3)
NO_FACE = (
    "that no face was found: the guarantee compares photos with the same result; faces that were missed "
)
STAYS = "everything outside the region, with all text that was not found"


class Sees(Finder):
    """Finds one thing, or nothing."""

    description = ""

    def __init__(self, description: str, kind: str = "") -> None:
        self.description, self.thing = description, kind  # type: ignore[misc]

    def __call__(self, photo: Any) -> list[Region]:
        if not self.thing:
            raise NoRegion(f"nothing of {self.description} was found", hint="look")
        return [Region(Box(2, 3, 20, 10), origin=Origin(self.thing, self.description, number=1, found=True))]


FINDS_FACES, TEXT, LINE = Sees("faces"), Sees("text"), Sees("text", "text")


def made(*regions: Any, if_none: str | None = OTHERS, **more: Any) -> Any:
    return dpveil.obfuscate(
        PHOTO, "dp-pix", regions=list(regions), if_none=if_none, epsilon=1, block=8, **more
    )


def test_what_one_finder_misses_is_passed_over_where_another_one_finds_something() -> None:
    release = made(FINDS_FACES, LINE, at_least="strong", bits=SeededBits(3))
    stated = release.certificate
    assert (stated.missing, stated.if_none, stated.passed_over, stated.exposed_requests) == (
        ("faces",),
        OTHERS,
        ("faces",),
        (),
    )
    for told in (stated.guarantees[0].scope.in_the_clear, stated.composition.scope.in_the_clear):
        assert [text.startswith(NO_FACE) for text in told].count(True) == 1
        assert STAYS in told
    assert not any("NOT FOUND" in text for text in stated.warnings)
    assert "no face was found: faces that were missed stay visible" in release.notes
    alone = made(LINE, if_none=None, bits=SeededBits(3))
    assert (release.image == alone.image).all()
    assert alone.certificate.composition.epsilon == stated.composition.epsilon
    assert made(FINDS_FACES, LINE).certificate.publishable


def test_where_nothing_is_found_the_photo_is_refused_whole_or_copied() -> None:
    for asked in (None, OTHERS):
        with pytest.raises(NoRegion) as refusal:
            made(FINDS_FACES, TEXT, if_none=asked)
        assert ("nothing of text was found" in refusal.value.message) == (asked == OTHERS)
    with pytest.raises(NoRegion):
        made(FINDS_FACES)
    whole, copy = (
        made(FINDS_FACES, TEXT, if_none=f"{OTHERS}+{last}").certificate for last in ("whole", "copy")
    )
    assert (whole.regions[0].origin.fallback, whole.missing, whole.if_none) == (True, (), None)
    assert (copy.guarantees, copy.missing, copy.publishable, copy.if_none) == (
        (),
        ("faces", "text"),
        False,
        None,
    )


Edit = Callable[[dict[str, Any]], None]


def rewrite(beside: Path, data: dict[str, Any]) -> None:
    """Write a certificate as a careful forger does: canonical, with a fitting checksum."""

    def text(members: dict[str, Any]) -> str:
        return json.dumps(members, sort_keys=True, indent=2, ensure_ascii=False) + "\n"

    rest = {key: value for key, value in data.items() if key != "checksum"}
    sealed = rest | {"checksum": hashlib.sha256(text(rest).encode()).hexdigest()}
    beside.write_text(text(sealed), encoding="utf-8")


def of_a_region(data: dict[str, Any]) -> None:
    data["missing"] = ["text"]
    data["request"] = ["text"]


PASSED, COPIED, FOUND, BARE, WHOLE = range(5)
LIES: dict[str, tuple[int, Edit, str]] = {
    "the request does not say so": (PASSED, lambda d: d.pop("if_none"), "edited"),
    "another way": (PASSED, lambda d: d.update(if_none="copy"), "malformed"),
    "a way that no certificate states": (PASSED, lambda d: d.update(if_none="others+whole"), "malformed"),
    "no way": (PASSED, lambda d: d.update(if_none=None), "edited"),
    "a way that is no text": (PASSED, lambda d: d.update(if_none=["others"]), "malformed"),
    "nothing is missing": (PASSED, lambda d: d.update(missing=[]), "no region is of it"),
    "what nobody asked for": (PASSED, lambda d: d.update(missing=["faces", "hats"]), "was not asked for"),
    "what has a region": (PASSED, of_a_region, "is missing, and a region is of it"),
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("honest")
    releases = (
        made(FINDS_FACES, LINE),
        made(FINDS_FACES, LINE, if_none="copy"),
        made(LINE),
        made(FINDS_FACES, if_none="copy"),
        made(FINDS_FACES, TEXT, if_none="others+whole"),
    )
    return [each.save(folder / f"{n}.png")[0] for n, each in enumerate(releases)]


@pytest.mark.parametrize("name", LIES)
def test_a_certificate_that_contradicts_itself_is_refused(
    honest: list[Path], tmp_path: Path, name: str
) -> None:
    which, edit, told = LIES[name]
    image = honest[which]
    beside = image.with_name(f"{image.name}.certificate.json")
    forged = tmp_path / image.name
    forged.write_bytes(image.read_bytes())
    data = json.loads(beside.read_text(encoding="utf-8"))
    rewrite(tmp_path / beside.name, data)
    assert dpveil.verify(forged).status in ("consistent", "unprotected"), "the forger writes as dpveil does"
    edit(data)
    rewrite(tmp_path / beside.name, data)
    found = dpveil.verify(forged)
    assert found.status == "inconsistent"
    assert any(told in problem for problem in found.problems), found.problems


def test_each_region_is_drawn_once_and_with_its_own_noise(monkeypatch):
    sizes = []
    real = DPPix._draw
    monkeypatch.setattr(
        DPPix, "_draw", lambda self, image, bits: sizes.append(image.shape) or real(self, image, bits)
    )
    flat = np.full((8, 8, 1), 100, np.uint8)
    release = private(["0,0,8,4", "0,4,8,4"], photo=flat, block=1, neighbourhood=1, epsilon=5)
    assert sizes == [(4, 8, 1), (4, 8, 1)]
    assert (release.image[:4] != release.image[4:]).any()


def test_each_region_is_charged_for_its_own_size(monkeypatch):
    asked = []
    real = DPPix.guarantee
    monkeypatch.setattr(DPPix, "guarantee", lambda self, **size: asked.append(size) or real(self, **size))
    private(["4,8,9,3", "0,0,5,7"])
    assert asked == [{"height": 3, "width": 9, "channels": 3}, {"height": 7, "width": 5, "channels": 3}]


def test_a_whole_photo_leaves_its_size_in_the_clear_and_nothing_else():
    scope = private().certificate.guarantees[0].scope
    assert scope.in_the_clear == ("the photo's size in pixels and its number of channels",)
    assert scope.covers == "whole photo: 24×20 pixels at 0,0, 3 channels"


def test_a_finder_that_returns_nothing_found_nothing():
    class Empty(Finder):
        description = "empty"

        def __call__(self, photo):
            return []

    with pytest.raises(NoRegion):
        private(["0,0,4,4", Empty()])


@dataclass(frozen=True)
class Many(Finder):
    """Finds one pixel, so many times."""

    count: int

    description = "many"
    data_dependent = False

    def __call__(self, photo: dpveil.Photo) -> list[Region]:
        return [Region(Box(0, 0, 1, 1))] * self.count


def test_a_photo_has_at_most_so_many_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil.release.plan.MOST_REGIONS", 20)
    photo = dpveil.Photo(np.zeros((8, 8, 3), np.uint8))
    assert len(choose_regions(photo, [Many(20)], None, None)[0]) == 20
    with pytest.raises(RegionError):
        choose_regions(photo, [Many(20), Many(1)], None, None)
