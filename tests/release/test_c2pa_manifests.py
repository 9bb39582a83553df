"""C2PA manifests: what they say is true, they hold nothing else, and the file stays one that verifies."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from chains import chain
from dpveil.catalogue import build
from dpveil.core.certificate import Output, parse_certificate
from dpveil.core.region import Box
from dpveil.errors import DPVeilError, NoRegion, OutputError
from dpveil.regions import Finder
from dpveil.release import c2pa_manifests
from dpveil.release.c2pa_manifests import Marker, source_type
from dpveil.release.keys import SigningKey
from records import record

c2pa = pytest.importorskip("c2pa")
CHAIN = chain()
ZEROS = 64 * "0"
RANDOM = np.random.RandomState(1).randint(0, 255, (30, 40, 3)).astype(np.uint8)
LEVELS = (np.arange(40 * 30 * 3) % 251).astype(np.uint8).reshape(30, 40, 3)
ANCHORED = {
    "trust": {"trust_anchors": CHAIN.root.decode()},
    "verify": {"remote_manifest_fetch": False, "ocsp_fetch": False},
}


class Nobody(Finder):
    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


@pytest.fixture(scope="module")
def marker(tmp_path_factory) -> Marker:
    return Marker.read(*CHAIN.write(tmp_path_factory.mktemp("keys")))


def noised(photo=LEVELS, **more):
    return dpveil.obfuscate(photo, "dp-pix", **{"epsilon": 1, "block": 8, "regions": "2,3,20,10", **more})


def read(image: Path):
    """A manifest as the library reads it, trusting the test's root alone."""
    kind = {".jpg": "jpeg"}.get(image.suffix, image.suffix[1:])
    found = c2pa.Reader(
        f"image/{kind}", io.BytesIO(image.read_bytes()), context=c2pa.Context.from_dict(ANCHORED)
    )
    return found.get_validation_state(), json.loads(found.json())


def stated(image: Path):
    return parse_certificate(Path(f"{image}.certificate.json").read_text(encoding="utf-8"))


def put(image: Path, certificate) -> None:
    Path(f"{image}.certificate.json").write_text(certificate.to_text(), encoding="utf-8")


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_a_marked_file_is_valid_for_both_and_its_pixels_are_the_same(tmp_path, marker, suffix):
    release = noised()
    image, plain = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    release.save(image, sign=SigningKey.generate(), mark=marker)
    release.save(plain)
    found = dpveil.verify(image)
    assert (found.status, found.problems, found.publishable) == ("consistent", (), True)
    assert stated(image).output.manifest == "c2pa"
    assert stated(plain).output.manifest is None
    assert "manifest" not in stated(plain).to_json()["output"]
    assert np.array_equal(dpveil.read(image).image, dpveil.read(plain).image)
    state, manifest = read(image)
    assert state == "Trusted"
    (made,) = manifest["manifests"].values()
    assert made["claim_generator_info"][0]["name"] == "dpveil"
    assert made["signature_info"]["common_name"] == "signer"
    assert "time" not in made["signature_info"]


def test_a_key_on_the_curve_signs_as_well(tmp_path):
    other = chain(curve=True)
    image = noised().save(tmp_path / "a.png", mark=Marker.read(*other.write(tmp_path)))[0]
    context = c2pa.Context.from_dict({"trust": {"trust_anchors": other.root.decode()}})
    found = c2pa.Reader("image/png", io.BytesIO(image.read_bytes()), context=context)
    assert found.get_validation_state() == "Trusted"
    assert read(image)[0] == "Valid"  # and by another root it is not trusted


# What the manifest says


def certified(method: str, parameters, box: Box, masked: int | None = None):
    made = build(method, parameters)
    whole = record("face", box, masked) if masked else record("box", box)
    output = Output(ZEROS, "png", 40, 30, 3)
    return replace(
        noised().certificate, method=method, parameters=made.parameters(), regions=(whole,), output=output
    )


FACES = {"gallery": f"gallery sha256:{ZEROS}", "model": f"attributes sha256:{ZEROS}"}
WHOLE, PART = Box(0, 0, 40, 30), Box(0, 0, 39, 30)
KINDS = {
    "dp-pix": ({"epsilon": 1, "block": 8}, "algorithmicallyEnhanced", "algorithmicallyEnhanced"),
    "fill": ({}, "algorithmicallyEnhanced", "algorithmicallyEnhanced"),
    "attributes": (
        {"attributes": "gender=1", **FACES},
        "trainedAlgorithmicMedia",
        "compositeWithTrainedAlgorithmicMedia",
    ),
    "attributes of heads": (
        {"attributes": "none", "gallery": "heads"},
        "algorithmicMedia",
        "composite",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_type_says_whether_a_trained_model_made_it(kind):
    parameters, whole, part = KINDS[kind]
    assert source_type(certified(kind.split()[0], parameters, WHOLE)) == whole
    assert source_type(certified(kind.split()[0], parameters, PART)) == part
    assert source_type(certified(kind.split()[0], parameters, WHOLE, 900)) == part


def test_a_copy_gets_no_manifest_and_nothing_is_written(tmp_path, marker):
    copy = noised(regions=Nobody(), if_none="copy")
    with pytest.raises(DPVeilError, match="unprotected copy") as caught:
        copy.save(tmp_path / "a.png", mark=marker)
    assert not isinstance(caught.value, OutputError)  # which would end a run over many
    assert list(tmp_path.iterdir()) == []


# Nothing of the original


def marked_source(path: Path) -> list[bytes]:
    """A JPEG with a word in each place for metadata, a thumbnail and a C2PA manifest; those words."""
    words = [b"EXIFWORD", b"COMMENTWORD", b"XMPWORD", b"PROFILEWORD", b"TRAILINGWORD", b"MANIFESTWORD"]
    exif = Image.Exif()
    exif[270], exif[315] = "EXIFWORD", "EXIFWORD artist"
    thumb = io.BytesIO()
    Image.fromarray(RANDOM).resize((16, 12)).save(thumb, "jpeg", comment=b"THUMBNAILWORD")
    settings = {"exif": exif, "comment": b"COMMENTWORD", "icc_profile": b"PROFILEWORD", "xmp": b"XMPWORD"}
    contents = io.BytesIO()
    Image.fromarray(RANDOM).save(contents, "jpeg", quality=90, **settings)
    data = contents.getvalue()
    thumbnail = b"\xff\xe2" + (len(thumb.getvalue()) + 2).to_bytes(2, "big") + thumb.getvalue()
    old = b"\xff\xeb\x00\x2eJP\x02\x11\x00\x00\x00\x01\x00\x00\x00\x24jumbMANIFESTWORD".ljust(48, b" ")
    path.write_bytes(data[:2] + thumbnail + old + data[2:] + b"TRAILINGWORD")
    return [*words, b"THUMBNAILWORD"]


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_nothing_of_the_original_enters_the_manifest(tmp_path, marker, suffix):
    words = marked_source(tmp_path / "SOURCENAME.jpg")
    source = (tmp_path / "SOURCENAME.jpg").read_bytes()
    assert [word for word in words if word not in source] == []
    release = noised(tmp_path / "SOURCENAME.jpg", regions="whole")
    image = release.save(tmp_path / f"a.{suffix}", mark=marker)[0]
    marked = image.read_bytes()
    begun = marked.index(b"jumb") - 4
    manifest = marked[begun : begun + int.from_bytes(marked[begun : begun + 4], "big")]
    for word in (*words, b"SOURCENAME", str(tmp_path).encode()):
        assert word not in marked, word
    levels = dpveil.read(tmp_path / "SOURCENAME.jpg").image
    pixels = [levels[row].tobytes()[at : at + 12] for row in range(0, 30, 7) for at in range(0, 100, 24)]
    assert not [piece for piece in pixels if piece in marked]
    for trace in (b"JFIF", b"\x89PNG", b"RIFF", b"thumbnail", b"ingredient", b"\xff\xd8\xff"):
        assert trace not in manifest, trace
    said = (Path(__file__).parents[2] / "docs" / "signing.md").read_text(encoding="utf-8")
    assert f"a manifest adds about {len(manifest) / 1000:.0f} kB" in said
    assert sum(map(bool, manifest)) < 3000  # the rest is the library's padding


# Files that come back


def test_a_manifest_is_there_if_the_certificate_says_so_and_only_then(tmp_path, marker):
    release = noised()
    marked, plain = (
        release.save(tmp_path / name, mark=m)[0] for name, m in (("a.png", marker), ("b.png", None))
    )
    for image, manifest in ((marked, None), (plain, "c2pa")):
        before = stated(image)
        put(image, replace(before, output=replace(before.output, manifest=manifest)))
        assert "holds more than a picture" in dpveil.verify(image).problems[0]


# Certificates and keys


def test_formats_without_a_place_for_manifests_are_refused(tmp_path, marker):
    for name in ("a.bmp", "a.tiff"):
        with pytest.raises(OutputError, match="write png, jpeg or webp"):
            noised().save(tmp_path / name, mark=marker)
    assert list(tmp_path.iterdir()) == []


def test_marking_asks_no_network(tmp_path, marker):
    """As far as Python sees; the library itself makes no system call for it, which `strace` showed."""
    events: list[str] = []
    watching = [True]

    def note(event: str, given: object) -> None:
        if watching and event.startswith("socket"):
            events.append(event)

    sys.addaudithook(note)
    noised().save(tmp_path / "a.png", mark=marker)
    watching.clear()
    assert events == []
    assert c2pa_manifests.SETTINGS["verify"] == {
        "remote_manifest_fetch": False,
        "ocsp_fetch": False,
        "verify_after_sign": True,
    }
    assert c2pa_manifests.SETTINGS["core"] == {"allowed_network_hosts": []}
