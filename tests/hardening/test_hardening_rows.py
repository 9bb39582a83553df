"""What `verify` says of forged releases, row by row: nothing in them chooses a word, hides or is left out."""

import hashlib
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hardening_certificates import honest, picture, placed, sealed
from hardening_certificates import stated as made

import dpveil
from dpveil.catalogue import build, stated
from dpveil.cli import run
from dpveil.core.certificate import SEEDED
from dpveil.core.origin import Origin
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError
from dpveil.release.words import HEURISTIC
from records import record

HONEST = honest()
ONE = next(iter(HONEST))


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


def verified(capsys, *arguments):
    """The exit code and the rows of `dpveil verify`."""
    code = run(["verify", *map(str, arguments)])
    return code, capsys.readouterr().out.splitlines()


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


def written(regions, *, method="dp-pix", tool=None, **fields):
    """The certificate of regions as forgers state it: with fitting numbers and warnings."""
    parameters = fields.pop("by", {"epsilon": 1, "block": 8, "neighbourhood": 16})
    data = made((stated if method == "latent" else build)(method, parameters), regions, **fields)
    return sealed(data if tool is None else data | {"tool": tool})


PART = record("box", Box(0, 0, 5, 5))


def test_labels_that_lie_are_never_released():
    region = Region(Box(0, 0, 1, 1), origin=Origin("whole"))
    with pytest.raises(RegionError, match="is not the whole photo"):
        dpveil.obfuscate(np.zeros((4, 4), np.uint8), "fill", regions=region)


@pytest.mark.parametrize("tool", ["Adobe Photoshop", "dpveil", "dpveil x", "dpveil 1\nOK", "", "xdpveil 1"])
def test_only_dpveil_writes_certificates(tmp_path, tool):
    [problem] = dpveil.verify(placed(tmp_path, written([PART], tool=tool))).problems
    assert "not written by dpveil" in problem or "malformed" in problem or "edited" in problem


def test_an_image_larger_than_its_certificate_allows_is_not_read(tmp_path):
    image = placed(tmp_path, sealed(HONEST[ONE]))
    with image.open("ab") as file:
        file.truncate(2**27)
    [problem] = dpveil.verify(image).problems
    assert "134,217,728 bytes" in problem


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
