"""What is kept of EXIF is what was asked for, the certificate states it, and nothing else of it is there."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_samples import picture
from PIL import Image

import dpveil
from chains import chain
from dpveil.cli import run
from dpveil.errors import DPVeilError
from dpveil.io.exif import NAMES, check_texts, exif_block, parse_names, texts_of
from dpveil.io.reading import read_metadata
from dpveil.io.writing import encode, only_picture

LINES = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=40)
TEXTS = st.fixed_dictionaries(
    {}, optional={"date": st.just("2024:05:31 18:00:00"), "copyright": LINES, "caption": LINES}
)
ALL = {"date": "2024:05:31 18:00:00", "copyright": "© Söze", "caption": "Keyser at the fair"}


def original(orientation: int = 6, **texts: str) -> Image.Exif:
    tags = Image.Exif()
    tags[0x112], tags[0x10F] = orientation, "SECRET camera"
    tags.get_ifd(0x8825)[1] = "N"
    for name, number in (("copyright", 0x8298), ("caption", 0x10E)):
        if name in texts:
            tags[number] = texts[name].encode()
    if "date" in texts:
        tags.get_ifd(0x8769)[0x9003] = texts["date"]
    return tags


def file(path, image: np.ndarray, **texts: str):
    Image.fromarray(image).save(path, exif=original(**texts))
    return path


@settings(max_examples=20)
@given(texts=TEXTS, other=TEXTS, orientation=st.integers(1, 8))
def test_a_block_states_its_texts_and_a_file_no_others(texts, other, orientation):
    tags = Image.Exif()
    tags.load(exif_block(texts, orientation))
    assert texts_of(tags, NAMES) == {name: texts[name] for name in NAMES if name in texts}
    assert tags.get(0x112, 1) == orientation
    for format_ in ("jpeg", "png"):
        data = encode(picture(9, 9), format_, texts)
        assert only_picture(data, format_, texts=texts)
        assert only_picture(data, format_, texts=other) == (texts == other)
        with Image.open(BytesIO(data)) as read:
            assert np.array_equal(np.asarray(read), dpveil.read(encode(picture(9, 9), format_)).image)


@pytest.mark.parametrize("asked", ["date", "copyright,caption", "caption,date,copyright,orientation"])
@pytest.mark.parametrize(("name", "out"), [("a.jpg", "b.jpg"), ("a.png", "b.png"), ("a.webp", "b.jpg")])
def test_what_is_asked_for_is_kept(tmp_path, name, out, asked):
    source, target = file(tmp_path / name, picture(40, 56), **ALL), tmp_path / out
    command = ["obfuscate", str(source), "--out", str(target), "--method", "fill", "--regions", "4,4,9,9"]
    assert run([*command, "--keep-metadata", asked]) == 0
    kept = {each: ALL[each] for each in parse_names(asked)}
    assert read_metadata(target, NAMES) == kept
    found = dpveil.verify(target)
    assert (found.status, found.problems, found.certificate.output.metadata) == ("consistent", (), kept)
    data = target.read_bytes()
    assert b"SECRET" not in data
    for each in {*NAMES} - {*kept}:
        assert ALL[each].encode() not in data


def test_a_certificate_and_a_block_that_differ_are_inconsistent(tmp_path):
    release = dpveil.obfuscate(picture(20, 20), "fill", regions="2,2,9,9")
    image, beside = release.save(tmp_path / "a.jpg", metadata=ALL)
    stated = beside.read_text(encoding="utf-8")
    for other in ({}, ALL | {"caption": "Kobayashi"}):
        plain, certificate = release.save(tmp_path / "b.jpg", metadata=other, replace=True)
        one, two = (dpveil.verify(path).certificate.output.sha256 for path in (image, plain))
        certificate.write_text(stated.replace(one, two), encoding="utf-8")
        assert dpveil.verify(plain).status == "inconsistent"


def test_a_marked_file_keeps_its_texts(tmp_path):
    pytest.importorskip("c2pa")
    from dpveil.release.c2pa_manifests import Marker

    marker = Marker.read(*chain().write(tmp_path))
    photo = dpveil.read(file(tmp_path / "a.jpg", picture(40, 56)))
    for name in ("b.jpg", "b.png"):
        release = dpveil.obfuscate(photo, "fill", regions="4,4,9,9")
        image, _ = release.save(tmp_path / name, mark=marker, metadata=ALL)
        assert dpveil.verify(image).problems == ()


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_what_is_read_may_be_kept(text):
    given = Image.Exif()
    given[0x010E] = text.encode().decode("latin-1")
    read = texts_of(given, NAMES)
    assert check_texts(read) == read


def test_texts_that_this_run_does_not_keep_are_not_left_from_another(tmp_path):
    file(tmp_path / "a.jpg", picture(24, 32), caption="somebody")
    command = ["obfuscate", str(tmp_path / "a.jpg"), "--out", f"{tmp_path}/out/", "--method", "fill"]
    command += ["--regions", "0,0,8,8"]
    assert run([*command, "--keep-metadata", "caption"]) == 0
    assert run([*command, "--keep-metadata", "caption"]) == 0
    assert run(command) == 1


def test_texts_that_cannot_be_kept_are_refused_and_hostile_ones_are_none(tmp_path):
    release = dpveil.obfuscate(picture(20, 20), "fill", regions="2,2,9,9")
    captions = [{"caption": text} for text in ("a\nb", "a" * 2001, "")]
    for texts in ({"place": "here"}, {"date": "today"}, *captions):
        with pytest.raises(DPVeilError):
            release.save(tmp_path / "a.jpg", metadata=texts)
    with pytest.raises(DPVeilError):
        release.save(tmp_path / "a.bmp", metadata=ALL)
    whole = original(**ALL).tobytes()
    for cut in range(6, len(whole), 3):
        damaged = Image.new("L", (1, 1))
        damaged.info["exif"] = whole[:cut]
        assert texts_of(damaged, NAMES).items() <= ALL.items()
    long = file(tmp_path / "long.jpg", picture(20, 20), caption="a" * 2001)
    command = ["obfuscate", str(long), "--method", "fill", "--regions", "2,2,9,9", "--out"]
    assert run([*command, str(tmp_path / "b.jpg"), "--keep-metadata", "caption"]) == 4
    assert run([*command, str(tmp_path / "b.jpg"), "--keep-metadata", "date"]) == 0
    assert run([*command, str(tmp_path / "b.webp"), "--keep-metadata", "date"]) == 2
    assert run([*command, str(tmp_path / "c.jpg"), "--keep-metadata", "camera"]) == 2
