"""Certificates of clips: written from data, read by writing them again, and verified beside their clip."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.video.plan.made import HEIGHT, WIDTH, box, face, facts, plan, whole

from dpveil.cli import run
from dpveil.core.envelope import canonical, checksum
from dpveil.errors import CertificateError, DPVeilError
from dpveil.faces.attributes_method import Attributes
from dpveil.mechanisms.pixel import Blur, DPPix
from dpveil.release.keys import SigningKey
from dpveil.video.certificate import ClipOutput, VideoCertificate, parse_certificate
from dpveil.video.facts import Frame, Key
from dpveil.video.plan import VideoPlan
from dpveil.video.verification import verify_clip
from dpveil.video.writing import Writer

NEAR = DPPix(epsilon=1, block=16, neighbourhood=16)
ALL = DPPix(epsilon=1, block=16)
pytest.importorskip("av")


@cache
def clip_bytes(frames: int = 100) -> bytes:
    """Return a clip of grey frames, as a release is written."""
    held = facts(frames)
    with tempfile.TemporaryDirectory() as folder:
        whole_clip = Path(folder, "whole.mp4")
        with Writer(whole_clip, held) as writer:
            for index, time in enumerate(held.times):
                writer.write(Frame(index, time, np.full((HEIGHT, WIDTH, 3), 99, np.uint8)))
        return whole_clip.read_bytes()


PLANS = {
    "free": plan(Attributes(), face(1, person=1), face(2, Key(9, 300, 9, 60, 80), person=1), face(3)),
    "whole": plan(ALL, whole(), request=("whole",)),
    "box": plan(NEAR, box(), request=("32,40,64,48",), keep_audio=True),
    "visible": plan(DPPix(epsilon=30, block=16), face(1), face(2, visible=True)),
    "heuristic": plan(Blur(sigma=8), face(1)),
}


def certificate(made: VideoPlan, data: bytes = b"", bits: str = "secure") -> VideoCertificate:
    return made.certificate(
        bits, ClipOutput(hashlib.sha256(data or clip_bytes()).hexdigest(), "mp4", made.facts.seconds)
    )


def saved(folder: Path, made: VideoCertificate, name: str = "private.mp4", data: bytes = b"") -> Path:
    path = folder / name
    path.write_bytes(data or clip_bytes())
    (folder / f"{name}.certificate.json").write_text(made.to_text())
    return path


def sealed(data: dict[str, Any]) -> str:
    rest = {name: value for name, value in data.items() if name not in ("checksum", "signature")}
    return canonical(data | {"checksum": checksum(rest)})


@pytest.mark.parametrize("made", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("bits", ["secure", "seeded"])
def test_a_certificate_is_read_as_it_was_written(made, bits):
    stated = certificate(made, bits=bits)
    stated = replace(stated, terms={"gallery sha256:0": "for research"})
    again = parse_certificate(stated.to_text())
    assert again == stated
    assert again.settings == made.settings
    assert again.quote.guarantees == made.guarantees
    assert (again.composition, again.strength) == (made.total, made.strength)
    assert again.publishable is ((bits == "secure" and made.method.name == "attributes") or again.publishable)


def test_it_tells_nothing_of_the_original():
    text = certificate(PLANS["free"]).to_text()
    for private in ("clip.mp4", "ab" * 16, '"x"', '"keys"', '"finder"', '"score"'):
        assert private not in text
    data = json.loads(text)
    assert set(data["tracks"][0]) == {"number", "kind", "person", "first", "last", "end", "visible"}
    assert len(data["guarantees"]) == 2  # of the linked tracks, and of the third
    assert data["composition"]["epsilon"] == 0
    assert data["publishable"] is True


def edits() -> list[tuple[str, Any]]:
    """Return a change of every plain value of a certificate, by its path."""
    found: list[tuple[str, Any]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for name, each in inner:
            walk(each, (*path, name))
        if not isinstance(node, dict | list):
            found.append((path, node))

    walk(json.loads(certificate(PLANS["whole"]).to_text()), ())
    return found


FREE_TO_STATE = {
    ("output", "sha256"),
    ("output", "seconds"),
    ("output", "frames"),
    ("request", 0),
    ("tracks", 0, "first"),
    ("tracks", 0, "kind"),
    ("tool",),
    ("tracks", 0, "number"),
    ("tracks", 0, "person"),
    ("output", "audio"),
    ("parameters", "block"),
}
"""Values that no other value follows from, so that only the checksum, or the clip, tells of a change."""


def test_any_edit_shows_even_if_the_checksum_is_made_anew():
    other = {bool: lambda v: not v, str: lambda v: v + "x", type(None): lambda v: 3}
    for path, value in edits():
        data = json.loads(certificate(PLANS["whole"]).to_text())
        holder = data
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = other.get(type(value), lambda v: v + 1)(value)
        with pytest.raises(DPVeilError):
            parse_certificate(canonical(data))
        if path not in FREE_TO_STATE and path != ("checksum",):
            with pytest.raises(DPVeilError):
                parse_certificate(sealed(data))


FORGED: list[tuple[str, Any]] = [
    ("a raster larger than the picture", lambda d: d.update(rasters=[[5000, 480]])),
    ("less than the whole picture", lambda d: d.update(rasters=[[64, 48]])),
    ("a crop by a method that reads none", lambda d: d.update(rasters=[None])),
    ("no raster", lambda d: d.update(rasters=[])),
    ("a frame beyond the end", lambda d: d["tracks"][0].update(last=100)),
    ("no track", lambda d: d.update(tracks=[], rasters=[])),
    ("a method of a file", lambda d: d.update(method="latent", parameters={"codec": "/etc/passwd"})),
    ("huge frames", lambda d: d["output"].update(width=10**6, height=10**6)),
    ("two kinds of one person", lambda d: d.update(tracks=[d["tracks"][0] | {"person": 1}] * 2)),
]


def test_what_cannot_be_is_refused():
    for what, change in FORGED:
        data = json.loads(certificate(PLANS["whole"]).to_text())
        change(data)
        with pytest.raises(DPVeilError) as refused:
            parse_certificate(sealed(data))
        assert "\n" not in str(refused.value), what


def test_a_face_that_is_said_to_be_covered_is_refused():
    """As if the face had been covered at no cost: every text fits, and no plan of faces does so."""
    stated = certificate(plan(Attributes.of({"attributes": "gender=4"}), face(1)))
    free = replace(stated, quote=replace(stated.quote, sizes=((64, 48),)))
    assert free.composition.free
    with pytest.raises(CertificateError, match="malformed"):
        parse_certificate(free.to_text())
    whole_crop = certificate(plan(Attributes(), whole()))
    with pytest.raises(CertificateError, match="malformed"):
        parse_certificate(replace(whole_crop, quote=replace(whole_crop.quote, sizes=(None,))).to_text())


def test_verify_finds_what_was_changed(tmp_path):
    path = saved(tmp_path, certificate(PLANS["free"]))
    found = verify_clip(path)
    assert (found.status, found.sound, found.publishable) == ("consistent", True, True)
    assert verify_clip(Path(f"{path}.certificate.json")).status == "consistent"
    assert verify_clip(path, at_least="strong").sound
    path.write_bytes(clip_bytes() + b"\0")
    assert "was changed" in verify_clip(path).problems[0]
    path.unlink()
    assert "is missing" in verify_clip(path).problems[0]
    path.symlink_to(tmp_path / "other.mp4")
    assert "symbolic link" in verify_clip(path).problems[0]
    path.unlink()
    os.mkfifo(path)
    assert "regular" in verify_clip(path).problems[0]
    wrong = saved(tmp_path, certificate(PLANS["free"]), "private.webm")
    assert "does not end as that of a mp4 file" in verify_clip(wrong).problems[0]
    text = saved(tmp_path, certificate(PLANS["free"], b"text"), "text.mp4", b"text")
    assert "is not a mp4 file" in verify_clip(text).problems[0]
    bare = tmp_path / "bare.mp4"
    bare.write_bytes(clip_bytes())
    assert verify_clip(bare).status == "missing"


@pytest.mark.parametrize(
    ("frames", "change", "problem"),
    [
        (99, {}, "has 99 frames of 640×480"),
        (100, {"facts": facts(height=HEIGHT - 2)}, "frames of 640×480, not"),
        (100, {"keep_audio": True}, "has no sound"),
        (100, {"facts": facts(time_base=Fraction(1, 24))}, "not as long"),
    ],
)
def test_verify_looks_into_the_clip(tmp_path, frames, change, problem):
    made, data = plan(NEAR, whole(), **change), clip_bytes(frames)
    found = verify_clip(saved(tmp_path, certificate(made, data), data=data))
    assert found.status == "inconsistent"
    assert problem in found.problems[0]


def test_without_pyav_the_bytes_are_checked(tmp_path, monkeypatch):
    path = saved(tmp_path, certificate(PLANS["free"]))
    monkeypatch.setitem(sys.modules, "av", None)
    found = verify_clip(path)
    assert found.sound
    assert any("PyAV is not installed" in note for note in found.notes)
    path.write_bytes(clip_bytes() + b"0")
    assert "was changed" in verify_clip(path).problems[0]


@pytest.mark.parametrize(
    ("name", "why"), [("visible", "practically none"), ("heuristic", "no formal guarantee")]
)
def test_what_promises_too_little_is_not_publishable(tmp_path, name, why):
    found = verify_clip(saved(tmp_path, certificate(PLANS[name])), at_least="weak")
    assert found.objections == (why,)
    assert not found.sound
    assert found.refused


def test_signatures(tmp_path):
    key, other = SigningKey.generate(), SigningKey.generate()
    signed = key.sign(certificate(PLANS["free"]))
    assert parse_certificate(signed.to_text()) == signed
    path = saved(tmp_path, signed)
    assert verify_clip(path, trust=key.public).sound
    assert verify_clip(path).signer == key.public.fingerprint
    assert "not a trusted key" in verify_clip(path, trust=other.public).untrusted
    unsigned = saved(tmp_path, certificate(PLANS["free"]), "unsigned.mp4")
    assert "not signed" in verify_clip(unsigned, trust=key.public).untrusted
    forged = saved(tmp_path, VideoCertificate(**{**vars(signed), "bits": "unknown"}), "forged.mp4")
    assert "forged" in verify_clip(forged).problems[0]


def test_the_command_verifies_folders_of_clips(tmp_path, capsys):
    good = saved(tmp_path, certificate(PLANS["free"]))
    weak = saved(tmp_path, certificate(PLANS["visible"]), "weak.mp4")
    assert run(["verify", str(good), "--at-least", "strong"]) == 0
    assert "(ε = 0)" in capsys.readouterr().out
    assert run(["verify", str(tmp_path)]) == 0
    both = capsys.readouterr().out
    assert "of 2 tracks, 1 stay as they are" in both
    assert "not publishable (below weak)" in both
    assert run(["verify", str(tmp_path), "--at-least", "moderate", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [entry["output"] for entry in told["failed"]] == [str(weak)]
    assert [entry["guarantee"] for entry in told["verified"]] == ["0-DP, any-image"]
    (tmp_path / "original.mp4").write_bytes(clip_bytes())
    assert run(["verify", str(tmp_path)]) == 1
    assert "original.mp4" in "".join(capsys.readouterr())
