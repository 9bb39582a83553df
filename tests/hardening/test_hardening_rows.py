"""What `verify` says of forged releases, row by row: nothing in them chooses a word, hides or is left out."""

import hashlib
import json
import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hardening_certificates import HEIGHT, WIDTH, honest, picture, placed, sealed
from hardening_certificates import output as made_output
from hardening_certificates import stated as made

import dpveil
from dpveil.batch import plan_tasks
from dpveil.catalogue import build, stated
from dpveil.cli import run
from dpveil.core.certificate import SEEDED
from dpveil.core.origin import Origin
from dpveil.core.region import Box, Region, RegionRecord
from dpveil.errors import InvalidParameter, RegionError
from dpveil.io import encode
from dpveil.release import pair, saving
from dpveil.release.saving import certificate_path, tidy
from dpveil.release.words import HEURISTIC
from records import record

HONEST = honest()
ONE = next(iter(HONEST))


@pytest.mark.parametrize("name", [".certificate.json", "..certificate.json", "...certificate.json"])
def test_a_certificate_that_leaves_no_name_for_an_image_ends_nothing(tmp_path, name, capsys):
    (tmp_path / ".dpveil-0123456789abcdef.tmp").write_bytes(picture())
    (tmp_path / name).write_bytes(sealed(HONEST[ONE]))
    assert run(["verify", str(tmp_path / name)]) == 1
    assert capsys.readouterr().out.count("\n") == 1
    tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_certificate_of_a_certificate_is_no_certificate_of_the_image(tmp_path, capsys):
    image = placed(tmp_path, sealed(HONEST[ONE]))
    twice = certificate_path(certificate_path(image))
    twice.write_bytes(sealed(HONEST[ONE]))
    assert run(["verify", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [entry["output"] for entry in document["verified"]] == [str(image)]
    assert [entry["output"] for entry in document["failed"]] == [str(certificate_path(image))]


@pytest.mark.parametrize("kind", ["blur", "mosaic", "seeded"])
def test_no_certificate_chooses_what_its_row_says(tmp_path, kind, capsys):
    data = deepcopy(
        next(d for n, d in HONEST.items() if n.startswith("dp-pix" if kind == "seeded" else kind))
    )
    if kind == "seeded":
        data |= {"bits": "seeded", "publishable": False}
    placed(tmp_path, sealed(data))
    assert run(["verify", str(tmp_path)]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("consistent ")
    assert (SEEDED if kind == "seeded" else HEURISTIC) in line


@pytest.mark.parametrize(
    "distance", [None, {"name": "singular-values", "settings": {"rank": 9, "steps": 1024}}]
)
def test_no_certificate_chooses_what_its_promise_measures(tmp_path, distance):
    data = deepcopy(next(data for name, data in HONEST.items() if name.startswith("dp-svd")))
    stated = data["guarantees"][0]["distance"]
    assert stated["name"] == "singular-values"
    for part in (*data["guarantees"], data["composition"]):
        part.pop("distance")
        part |= {} if distance is None else {"distance": distance}
    problems = dpveil.verify(placed(tmp_path, sealed(data))).problems
    assert any("not what the parameters and regions give" in problem for problem in problems)


@pytest.mark.parametrize("name", [".original.jpg", ".thumbnails/a.png", "._a.png"])
def test_a_hidden_picture_beside_releases_is_no_release(tmp_path, name, capsys):
    placed(tmp_path, sealed(HONEST[ONE]))
    assert run(["verify", str(tmp_path)]) == 0
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(picture())
    capsys.readouterr()
    assert run(["verify", str(tmp_path)]) == 1
    assert f"MISSING       {tmp_path / name}  " in capsys.readouterr().out


@pytest.mark.parametrize("channels", [0, 2, 4, 2**31])
def test_no_photo_has_another_number_of_channels_than_one_or_three(tmp_path, channels):
    data = deepcopy(next(data for name, data in HONEST.items() if name.startswith("gallery")))
    data["output"]["channels"] = channels
    [problem] = dpveil.verify(placed(tmp_path, sealed(data))).problems
    assert "certificate" in problem


def test_a_webp_in_colour_is_no_grey_release(tmp_path):
    levels = (np.arange(40 * 30) % 251).astype(np.uint8).reshape(30, 40, 1)
    saved, beside = dpveil.obfuscate(levels, "dp-pix", epsilon=1, block=8).save(tmp_path / "a.webp")
    assert dpveil.verify(saved).status == "consistent"
    colours = encode(np.repeat(levels, 3, axis=2) // np.array([1, 2, 3], np.uint8), "webp")
    saved.write_bytes(colours)
    data = json.loads(beside.read_bytes())
    data["output"]["sha256"] = hashlib.sha256(colours).hexdigest()
    beside.write_bytes(sealed(data))
    [problem] = dpveil.verify(saved).problems
    assert "40×30×3" in problem


def verified(capsys, *arguments):
    """The exit code and the rows of `dpveil verify`."""
    code = run(["verify", *map(str, arguments)])
    return code, capsys.readouterr().out.splitlines()


def test_folders_that_cannot_be_read_are_failures(tmp_path, capsys):
    """Names of 17 × 250 letters are longer than the system takes: what is in there is not looked at."""
    placed(tmp_path, sealed(HONEST[ONE]))
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(17):
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
        Path("bad.png").write_bytes(b"")
        code, rows = verified(capsys, tmp_path)
        assert (code, len(rows)) == (1, 2)
        assert rows[1].startswith("INCONSISTENT ")
        assert "the folder cannot be read (File name too long)" in rows[1]
        tasks = plan_tasks([tmp_path], tmp_path / "out")
        assert [task.source.name for task in tasks] == ["d" * 250]
        Path("bad.png").unlink()
        for _ in range(17):
            os.chdir("..")
            Path("d" * 250).rmdir()
    finally:
        os.chdir(here)


def test_what_may_lie_there_is_not_said_to_be_missing(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", refused)
    [problem] = dpveil.verify(tmp_path / "a.png").problems
    assert "Permission denied" in problem


def test_links_and_other_pictures_are_reported_and_not_followed(tmp_path, capsys):
    placed(tmp_path, sealed(HONEST[ONE]))
    (tmp_path / "inner").mkdir()
    placed(tmp_path / "inner", sealed(HONEST[ONE]), "b.png")
    for name in ("folder", "x.png"):
        (tmp_path / name).symlink_to(tmp_path / "inner")
    for name in ("raw.heic", "raw.gif", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    code, rows = verified(capsys, tmp_path)
    told = {row.split()[-1] if row[:1] == "c" else Path(row.split()[1]).name: row for row in rows}
    assert (code, len(rows)) == (1, 6)
    assert sum(row.startswith("consistent ") for row in rows) == 2
    assert all("symbolic link" in told[name] for name in ("folder", "x.png"))
    assert all("has no certificate" in told[name] for name in ("raw.heic", "raw.gif"))
    code, rows = verified(capsys, tmp_path / "folder")
    assert (code, len(rows), "symbolic link" in rows[0]) == (1, 1, True)


@pytest.mark.parametrize("path", [None, 5, b"a.png"])
def test_what_is_no_path_is_a_mistake_of_the_caller(path):
    with pytest.raises(InvalidParameter, match="is not a path"):
        dpveil.verify(path)


def test_rows_come_as_they_are_found(tmp_path, monkeypatch, capsys):
    for name in ("a.png", "b.png"):
        placed(tmp_path, sealed(HONEST[ONE]), name)
    original = dpveil.release.verification.verify

    def stopped(path, **options):
        if path.name == "b.png":
            raise KeyboardInterrupt
        return original(path, **options)

    monkeypatch.setattr(dpveil.release.verification, "verify", stopped)
    run(["verify", str(tmp_path)])
    assert capsys.readouterr().out.startswith("consistent ")


def written(regions, *, method="dp-pix", tool=None, **fields):
    """The certificate of regions as forgers state it: with fitting numbers and warnings."""
    parameters = fields.pop("by", {"epsilon": 1, "block": 8, "neighbourhood": 16})
    data = made((stated if method == "latent" else build)(method, parameters), regions, **fields)
    return sealed(data if tool is None else data | {"tool": tool})


PART = record("box", Box(0, 0, 5, 5))
ALL = Box(0, 0, WIDTH, HEIGHT)
FILES_OF_LATENT = next(data for name, data in HONEST.items() if name.startswith("latent"))["parameters"]
LIES = {
    "a mask of one pixel for the whole photo": (
        [record("mask", ALL, masked=1)], {"request": ("whole",)}, "requested region whole",
    ),
    "a mask of one pixel for a box": (
        [record("mask", ALL, masked=1)], {"request": ("2,3,4,5",)}, "requested region 2,3,4,5",
    ),
    "a mask of one pixel for a face": (
        [record("face 1", ALL, masked=1, found=True)], {"request": ("faces",)}, "faces were requested",
    ),
    "a head of one pixel for the whole photo": (
        [record("head of face 1", ALL, masked=1, found=True)],
        {"request": ("whole",), "method": "latent", "by": FILES_OF_LATENT}, "requested region whole",
    ),
    "the whole photo was not found": (
        [PART], {"request": ("whole",), "missing": ("whole",)},
        "requested region whole",
    ),
    "a box was not found": (
        [PART], {"request": ("9,9,9,9",), "missing": ("9,9,9,9",)},
        "region 9,9,9,9",
    ),
    "commas": ([PART], {"request": ("," * 400_000,)}, "no protected region"),
    "a part is the whole photo": ([record("whole photo", Box(0, 0, 1, 1))], {}, "is not the whole"),
    "a mask is the whole photo": ([record("whole photo", ALL, masked=1)], {}, "is not the whole"),
    "a part was protected as nothing was found": (
        [record("whole photo, as no region was found", Box(0, 0, 2, 2))], {"request": ("faces",)},
        "is not the whole",
    ),
    "a face that nobody found": ([RegionRecord(PART.box, Origin("face", number=1))], {}, "a detected face"),
    "a fallback that is a box": ([RegionRecord(PART.box, Origin(fallback=True))], {}, "is a fallback"),
    "traces that are not told": ([RegionRecord(PART.box, Origin(grown_to="WebP"))], {}, "does not say"),
    "an outline without a mask": ([RegionRecord(PART.box, Origin(outlined=True))], {}, "has no outline"),
    "strong": ([PART], {"strength": "strong", "by": {"epsilon": 99}}, "the strength is practically none"),
    "missing what nobody asked for": ([PART], {"missing": ("faces",)}, "was not asked for"),
    "another finder": (
        [replace(PART, origin=Origin(finder="1,1,1,1"))], {"request": ("0,0,5,5",)},
        "requested region 0,0,5,5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_what_is_said_of_regions_and_requests_fits_them(tmp_path, name):
    regions, fields, told = LIES[name]
    result = dpveil.verify(placed(tmp_path, written(regions, **fields)))
    assert result.status == "inconsistent"
    assert any(told in problem for problem in result.problems)


def test_labels_that_lie_are_never_released():
    region = Region(Box(0, 0, 1, 1), origin=Origin("whole"))
    with pytest.raises(RegionError, match="is not the whole photo"):
        dpveil.obfuscate(np.zeros((4, 4), np.uint8), "fill", regions=region)


@pytest.mark.parametrize("tool", ["Adobe Photoshop", "dpveil", "dpveil x", "dpveil 1\nOK", "", "xdpveil 1"])
def test_only_dpveil_writes_certificates(tmp_path, tool):
    [problem] = dpveil.verify(placed(tmp_path, written([PART], tool=tool))).problems
    assert "not written by dpveil" in problem or "malformed" in problem or "edited" in problem


@pytest.mark.parametrize("kind", ["image changed", "image missing", "pixels", "box", "tool"])
def test_nothing_is_computed_for_a_certificate_that_is_wrong_already(tmp_path, monkeypatch, kind):
    regions = [record("box", Box(0, 0, 2**31, 2**31))] if kind == "box" else [PART]
    output = replace(made_output(), width=2**31, height=2**31) if kind == "pixels" else made_output()
    tool = "other" if kind == "tool" else None
    data = json.loads(written([PART], output=output, tool=tool))
    data["regions"][0]["box"] = [regions[0].box.x, regions[0].box.y, regions[0].box.w, regions[0].box.h]
    image = placed(tmp_path, sealed(data))
    if kind == "image changed":
        image.write_bytes(b"\x89PNG")
    if kind == "image missing":
        image.unlink()

    def computed(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(dpveil.release.verification, "quote_of", computed)
    monkeypatch.setattr(pair, "read_bytes", computed)
    result = dpveil.verify(image)
    assert result.status == "inconsistent"
    assert not any("recomputed" in problem for problem in result.problems)


def test_an_image_larger_than_its_certificate_allows_is_not_read(tmp_path):
    image = placed(tmp_path, sealed(HONEST[ONE]))
    with image.open("ab") as file:
        file.truncate(2**27)
    [problem] = dpveil.verify(image).problems
    assert "134,217,728 bytes" in problem


def test_leftovers_that_no_certificate_waits_for_are_not_read(tmp_path, monkeypatch):
    large = tmp_path / ".dpveil-0123456789abcdef.tmp"
    folder = tmp_path / ".dpveil-0000000000000000.tmp"
    folder.mkdir()
    for name in (".dpveil-1123456789abcdef.tmp", ".dpveil-2123456789abcdef.tmp"):
        (tmp_path / name).write_bytes(picture())
    large.touch()
    hash_of, hashed = saving.sha256_of, []
    monkeypatch.setattr(saving, "sha256_of", lambda path: hashed.append(path) or hash_of(path))
    tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert not hashed

    with large.open("wb") as file:
        file.truncate(2**28)
    (tmp_path / ".dpveil-1123456789abcdef.tmp").write_bytes(picture())
    (tmp_path / "a.png.certificate.json").write_bytes(sealed(HONEST[ONE]))
    tidy(tmp_path)
    assert [path.name for path in hashed] == [".dpveil-1123456789abcdef.tmp"]
    assert dpveil.verify(tmp_path / "a.png").status == "consistent"
    assert not large.exists()


def test_an_image_with_more_than_a_picture_is_no_release(tmp_path):
    payload = picture() + b"<script>payload</script>"
    data = deepcopy(HONEST[ONE])
    data["output"]["sha256"] = hashlib.sha256(payload).hexdigest()
    image = placed(tmp_path, sealed(data))
    image.write_bytes(payload)
    [problem] = dpveil.verify(image).problems
    assert "more than a picture" in problem
    [problem] = dpveil.verify(placed(tmp_path, sealed(HONEST[ONE]), "a.html")).problems
    assert "its name does not end as that of a png file" in problem


ODD = [
    "x.png" + 59 * " " + "consistent    b.png", "x  0.5-DP, any-image ", " x", "x\u3164", "x\u2800",
    "x\u115f",
    "x\u034f", "x\ufe0f", "e\u0301", "\u05d0", "\u202ex", "x\u3000y", "x\xa0y",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_no_name_forges_a_row(tmp_path, capsys, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    placed(Path(), sealed(HONEST[ONE]), f"{name}.png")
    _, [row] = verified(capsys, f"{name}.png")
    assert row.isascii()
    assert row.split("  ")[0] == "consistent"
    assert len([part for part in row.split("  ") if part]) == 7
    assert "  0.5-DP" not in row


@pytest.mark.parametrize(
    ("regions", "told"),
    [
        ([record("box", Box(3, 3, 1, 1))], "  1 of 1,200 pixels"),
        ([record("mask", ALL, masked=7), PART], "  at most 32 of 1,200 pixels"),
        ([PART, record("box", Box(5, 0, 5, 5))], "  50 of 1,200 pixels"),
        ([record("box", ALL), PART], ""),
    ],
)
def test_the_row_says_how_much_is_protected(tmp_path, capsys, regions, told):
    placed(
        tmp_path,
        written([replace(r, origin=replace(r.origin, finder="mine")) for r in regions], request=("mine",)),
    )
    _, [row] = verified(capsys, tmp_path)
    assert told in row
    assert bool(told) == (" of 1,200 pixels" in row)
