"""Received folders: files of every kind, texts that steer terminals, numbers that fill memories, reruns."""

import hashlib
import json
import os
import random
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hardening_certificates import WATCH, honest, picture, placed, sealed
from hardening_certificates import stated as made
from hardening_forgeries import legal

import dpveil
from dpveil.cards.croissant import card, releases, together
from dpveil.catalogue import build, method_from_certificate
from dpveil.cli import run
from dpveil.core import certificate
from dpveil.core.certificate import SEEDED
from dpveil.core.rationals import exact
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import BudgetRefused, CertificateError, RegionError
from dpveil.release.saving import certificate_path
from dpveil.release.words import HEURISTIC
from records import record

HONEST = honest()
ONE = next(iter(HONEST))


def fifo(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def elsewhere(path):
    other = path.parent / "elsewhere"
    other.write_bytes(sealed(HONEST[ONE]) if path.suffix == ".json" else picture())
    path.symlink_to(other)


def sparse(path):
    with path.open("wb") as file:
        file.truncate(2**31)


def lost(path):
    path.symlink_to("nowhere")


def unreadable(path):
    path.write_bytes(b"\xff\xfe\x00")


KINDS = {
    fifo: "not a regular file", endless: "symbolic link", elsewhere: "symbolic link",
    Path.mkdir: "not a regular file", sparse: "2,147,483,648 bytes", lost: "symbolic link", unreadable: "",
}  # fmt: skip


@pytest.mark.parametrize("which", ["image", "certificate"])
@pytest.mark.parametrize("make", KINDS)
def test_files_of_every_kind_end_in_one_line(tmp_path, make, which):
    image = placed(tmp_path, sealed(HONEST[ONE]))
    path = image if which == "image" else certificate_path(image)
    path.unlink()
    make(path)
    result = dpveil.verify(image, max_pixels=10_000)
    assert result.status == "inconsistent"
    [problem] = result.problems
    assert KINDS[make] in problem


TEXTS = {
    "deep list": b"[" * 100_000, "deep object": b'{"a":' * 100_000,
    "deep and closed": b"[" * 900 + b"]" * 900, "digits": b"[" + b"9" * 5000 + b"]", "empty": b"",
    "null": b"null\n", "number": b"5\n", "text": b'"a"\n', "surrogate": b'{"schema": "\\ud800"}\n',
    "nul": b"\0" * 100, "no UTF-8": b"\xc3\x28",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_no_certificate_end_in_one_line(tmp_path, name):
    [problem] = dpveil.verify(placed(tmp_path, TEXTS[name])).problems
    assert problem.startswith("the certificate ")
    assert problem.isprintable()


def test_a_folder_with_forgeries_still_reports_every_file(tmp_path, capsys):
    steering = deepcopy(HONEST[ONE])
    steering["regions"][0]["origin"]["kind"] = "\x1b[2J\x9b31m\nunmodified    z.png  0-DP\u202e"
    warned = deepcopy(HONEST[ONE])
    warned |= {"bits": "mine", "tool": "dpveil 9.9", "publishable": False}
    broken = deepcopy(HONEST[ONE])
    broken["parameters"]["epsilon"] = "1" + "0" * 990
    for name, contents in {
        "a.png": sealed(HONEST[ONE]), "b.png": sealed(steering), "c.png": TEXTS["deep list"], "d.png": b"\0",
        "e\x1b[2J\n.png": sealed(HONEST["copy"]), "f.png": sealed(broken), "g.png": sealed(warned),
        "h.png": sealed(HONEST[ONE]),
    }.items():  # fmt: skip
        placed(tmp_path, contents, name)
    os.mkfifo(tmp_path / "i.png")
    (tmp_path / "j.png.certificate.json").symlink_to("/dev/zero")

    assert run(["verify", str(tmp_path)]) == 1
    told = capsys.readouterr()
    lines = told.out.split("\n")[:-1]
    assert len(lines) == 10
    assert all(line.isprintable() for line in lines)
    words = ["unmodified", "INCONSISTENT", "INCONSISTENT", "INCONSISTENT", "UNPROTECTED", "INCONSISTENT"]
    words += ["unmodified", "unmodified", "UNCERTIFIED", "INCONSISTENT"]
    assert [line.split()[0] for line in lines] == words

    assert run(["verify", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [len(document[key]) for key in ("verified", "failed")] == [3, 7]


def test_no_message_steers_the_terminal(tmp_path, capsys):
    """Headers of tables and names of files reach messages of other commands too."""
    table = tmp_path / "t.csv"
    table.write_text("age\x1b[2J\u202e\n1\n", encoding="utf-8")
    query = ["mechanism", "query", str(table), "--column", "x", "--range", "0:9", "--epsilon", "1"]
    assert run([*query, "--query", "mean"]) != 0
    told = capsys.readouterr()
    assert "age\\x1b[2J\\u202e" in told.err
    assert all(line.isprintable() for line in (told.out + told.err).split("\n"))


@pytest.mark.parametrize("keys", [("regions", "guarantees"), ("request",), ("post_processing",)])
def test_a_certificate_of_too_many_regions_is_refused(tmp_path, keys, monkeypatch):
    monkeypatch.setattr(certificate, "MOST_REGIONS", 20)
    data = deepcopy(HONEST[ONE])
    for key in keys:
        data[key] = data[key][:1] * 21
    [problem] = dpveil.verify(placed(tmp_path, sealed(data))).problems
    assert "more than 20" in problem


# What `verify` says of forged releases, row by row: nothing in them chooses a word, hides or is left
# out.


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
    assert line.startswith("unmodified ")
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
    assert f"UNCERTIFIED   {tmp_path / name}  " in capsys.readouterr().out


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
    told = {row.split()[-1] if row[:1] == "u" else Path(row.split()[1]).name: row for row in rows}
    assert (code, len(rows)) == (1, 6)
    assert sum(row.startswith("unmodified ") for row in rows) == 2
    assert all("symbolic link" in told[name] for name in ("folder", "x.png"))
    assert all("has no certificate" in told[name] for name in ("raw.heic", "raw.gif"))
    code, rows = verified(capsys, tmp_path / "folder")
    assert (code, len(rows), "symbolic link" in rows[0]) == (1, 1, True)


def written(regions, *, method="dp-pix", tool=None, **fields):
    """The certificate of regions as forgers state it: with fitting numbers and warnings."""
    parameters = fields.pop("by", {"epsilon": 1, "block": 8, "neighbourhood": 16})
    data = made(
        (method_from_certificate if method == "latent" else build)(method, parameters), regions, **fields
    )
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


# Cards of strangers' releases: certificates lead nowhere, open nothing, and are told as they are.


CARDED = {name: data for name, data in honest().items() if name != "copy"}
NUMBERS = ("epsilon", "delta", "rho", "diameter")
HOSTILE = "../../etc/passwd\x1b[2J\n<script>&?#%2e%2e/\u202e"


def told(folder: Path, *images: Path) -> dict:
    """Return the card of verified images; nothing is touched while it is made."""
    found = [dpveil.verify(image) for image in images]
    with WATCH.watching():
        files = releases(folder, found)
        document = card({"name": "set"}, files, together(files), "out/")
    assert WATCH.seen == []
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("name", CARDED)
def test_every_promise_is_told_in_whole_and_no_better(tmp_path, name):
    data = CARDED[name]
    stated = data["composition"]
    image = placed(tmp_path, sealed(data))
    if stated["kind"] == "heuristic" or (stated["kind"] == "metric" and stated["diameter"] is None):
        with pytest.raises((BudgetRefused, CertificateError), match=r"formal guarantee|diameter"):
            told(tmp_path, image)
        return
    document = told(tmp_path, image)
    own = document["distribution"][0]["dpveil:guarantee"]
    for number in NUMBERS:
        given = stated.get(number)
        assert (f"dpveil:{number}" in own) == (given is not None)
        assert given is None or Fraction(repr(own[f"dpveil:{number}"])) >= exact(given)
    assert (own["dpveil:kind"], own["dpveil:relation"]) == (stated["kind"], stated["relation"]["name"])
    assert own.get("dpveil:pixels") == stated["relation"].get("m")
    assert own.get("dpveil:metric") == stated.get("metric")
    assert own["dpveil:covers"]
    assert own["dpveil:inTheClear"]
    assert own["dpveil:strength"] == data["strength"]
    assert document["distribution"][0]["dpveil:postProcessing"] == data["post_processing"]
    (most,) = document["dpveil:perPerson"]
    if stated["kind"] == "metric":
        assert (most["dpveil:kind"], most.get("dpveil:metric")) == ("pure", None)
        total = exact(stated["epsilon"]) * exact(stated["diameter"])
        assert Fraction(repr(most["dpveil:epsilon"])) >= total
        assert most["dpveil:relation"] == stated["relation"]["name"]
    else:
        assert {key: most.get(key) for key in own if key != "dpveil:covers"} == {
            key: value for key, value in own.items() if key not in ("dpveil:covers",)
        } | dict.fromkeys(["dpveil:inTheClear"])


def card_is_made(folder: Path, data: dict) -> bool:
    """Whether a forged certificate gets a card, which then holds addresses of its own files only."""
    image = placed(folder, sealed(data))
    try:
        document = told(folder, image)
    except (BudgetRefused, CertificateError):
        return False
    assert HOSTILE not in json.dumps(document, ensure_ascii=False)
    one = document["distribution"][0]
    addresses = {one["contentUrl"]: "out/a.png", one["dpveil:certificate"]: "out/a.png.certificate.json"}
    for address, expected in addresses.items():
        parts = urlsplit(address)
        assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
        assert (unquote(parts.path), address.isascii()) == (expected, True)
    return True


def test_extreme_settings_end_in_a_card_or_in_a_refusal(tmp_path):
    draws = (legal(random.Random(index)) for index in range(60))  # noqa: S311
    assert sum(card_is_made(tmp_path, data) for data in draws if data is not None) > 10
