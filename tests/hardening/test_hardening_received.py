"""Received folders: files of every kind, texts that steer terminals, numbers that fill memories, reruns."""

import json
import os
import sys
from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hardening_certificates import WATCH, honest, picture, placed, sealed

import dpveil
from dpveil.cli import run
from dpveil.core.certificate import MOST_REGIONS, parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.region import Box, first_overlap
from dpveil.errors import RegionError
from dpveil.mechanisms.pixel import BitPlanes, DCTGaussian
from dpveil.release.saving import certificate_path
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


def test_a_large_file_is_refused_before_it_is_opened(tmp_path):
    image = placed(tmp_path, sealed(HONEST[ONE]))
    with certificate_path(image).open("ab") as file:
        file.truncate(MOST_BYTES + 1)
    with WATCH.watching():
        [problem] = dpveil.verify(image).problems
    assert ("open", str(certificate_path(image))) not in WATCH.seen
    assert f"at most {MOST_BYTES:,}" in problem


TEXTS = {
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "deep and closed": b"[" * 900 + b"]" * 900,
    "digits": b"[" + b"9" * 5000 + b"]",
    "empty": b"",
    "null": b"null\n",
    "number": b"5\n",
    "text": b'"a"\n',
    "surrogate": b'{"schema": "\\ud800"}\n',
    "nul": b"\0" * 100,
    "no UTF-8": b"\xc3\x28",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_no_certificate_end_in_one_line(tmp_path, name):
    [problem] = dpveil.verify(placed(tmp_path, TEXTS[name])).problems
    assert problem.startswith("the certificate ")
    assert problem.isprintable()


RAW = {
    "infinite": ('"epsilon": 1', '"epsilon": 1e400'),
    "NaN": ('"epsilon": 1', '"epsilon": NaN'),
    "twice": ('"bits": "secure"', '"bits": "seeded",\n  "bits": "secure"'),
    "long": ('"epsilon": 1', '"epsilon": 0.' + "3" * 4000),
}


@pytest.mark.parametrize("name", RAW)
def test_numbers_and_keys_that_json_alone_would_take_are_refused(tmp_path, name):
    text = sealed(HONEST[ONE]).decode()
    before, after = RAW[name]
    assert before in text
    assert "certificate" in dpveil.verify(placed(tmp_path, text.replace(before, after).encode())).problems[0]


VALUES = [
    True, 0, -1, 2**31, 10**30, 10**40, -0.0, 1e308, 1e-308, 5e-324, [], {}, "", "a\0b", "\x1b[2J\n",
    "\u202e", "1e999999999", "9" * 999, "1/" + "9" * 900, "1" + "0" * 990, "0/0", "1/0", "١", "nan", "-inf",
    "x" * 10**5,
]  # fmt: skip


@pytest.mark.parametrize(
    "name", [ONE, "copy", *[n for n in HONEST if n.startswith(("latent", "attributes"))][:2]]
)
def test_any_value_anywhere_ends_in_one_printable_line(tmp_path, name):
    def places(data, path=()):
        yield path
        items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for key, value in items:
            yield from places(value, (*path, key))

    for number, path in enumerate(list(places(HONEST[name]))[1:]):
        for value in (VALUES * 2)[number % len(VALUES) :][:5]:
            data = deepcopy(HONEST[name])
            target = data
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = value
            result = dpveil.verify(placed(tmp_path, sealed(data)))
            assert all(line.isprintable() and len(line) <= 500 for line in result.problems), (path, value)
            assert not any("recomputed (" in line for line in result.problems), (path, value)


def test_a_folder_with_forgeries_still_reports_every_file(tmp_path, capsys):
    steering = deepcopy(HONEST[ONE])
    steering["regions"][0]["origin"]["kind"] = "\x1b[2J\x9b31m\nconsistent    z.png  0-DP\u202e"
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
    words = ["consistent", "INCONSISTENT", "INCONSISTENT", "INCONSISTENT", "UNPROTECTED", "INCONSISTENT"]
    assert [line.split()[0] for line in lines] == [
        *words,
        "consistent",
        "consistent",
        "MISSING",
        "INCONSISTENT",
    ]

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


def test_folders_may_lie_deeper_than_functions(tmp_path, capsys):
    placed(tmp_path, sealed(HONEST[ONE]))
    here, depth = Path.cwd(), sys.getrecursionlimit() + 50
    try:
        os.chdir(tmp_path)
        for _ in range(depth):
            Path("d").mkdir()
            os.chdir("d")
        assert run(["verify", str(tmp_path)]) == 0
    finally:
        for _ in range(depth):
            os.chdir("..")
            Path("d").rmdir()
        os.chdir(here)
    assert capsys.readouterr().out.count("\n") == 1


def test_a_rerun_trusts_no_certificate_beside_its_outputs(tmp_path, monkeypatch, capsys):
    """`obfuscate` reads the certificates of what lies where it would write; none of them is followed."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("out").mkdir()
    for name in "abcde":
        (Path("in") / f"{name}.png").write_bytes(picture())
    command = ["obfuscate", "in", "--out", "out", "--method", "dp-pix", "--epsilon", "1", "--block", "8"]
    command += ["--regions", "whole", "--json"]
    trap = tmp_path / "secret"
    trap.write_bytes(b"\x08")
    latent = deepcopy(next(data for name, data in HONEST.items() if name.startswith("latent")))
    latent["parameters"] |= {"inpainting": str(trap), "codec": "a\0b"}
    placed(Path("out"), sealed(latent), "a.png")
    placed(Path("out"), TEXTS["deep list"], "b.png")
    os.mkfifo("out/c.png.certificate.json")
    Path("out/d.png.certificate.json").symlink_to("/dev/zero")
    with WATCH.watching():
        code = run(command)
    assert str(trap) not in {name for _, name in WATCH.seen}
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert [Path(entry["input"]).name for entry in document["released"]] == ["e.png"]
    assert len(document["failed"]) == 4
    for entry in document["failed"]:
        there = Path(entry["input"]).name in {"a.png", "b.png"}  # beside the other two is a certificate alone
        assert ("not a release with these settings" if there else "is gone") in entry["error"]


def test_leftovers_of_killed_runs_are_matched_with_bounded_reading(tmp_path):
    """`tidy` looks through certificates for the one that a leftover belongs to."""
    from dpveil.release.saving import tidy

    (tmp_path / ".dpveil-0123456789abcdef.tmp").write_bytes(picture())
    sparse(tmp_path / "a.png.certificate.json")
    (tmp_path / "b.png.certificate.json").write_bytes(TEXTS["deep list"])
    with WATCH.watching():
        tidy(tmp_path)
    assert str(tmp_path / "a.png.certificate.json") not in {n for event, n in WATCH.seen if event == "open"}


def test_overlaps_are_the_pairs_that_share_a_pixel():
    rng = np.random.Generator(np.random.PCG64(5))
    for count in range(30):
        boxes = [Box(*rng.integers(0, 20, 2).tolist(), *rng.integers(1, 6, 2).tolist()) for _ in range(count)]
        pairs = [(i, j) for j in range(count) for i in range(j) if boxes[i].overlaps(boxes[j])]
        assert first_overlap(boxes) == (len(pairs), min(pairs, default=(0, 0)))


def test_more_regions_than_can_be_verified_are_never_released():
    boxes = [f"{x},{y},1,1" for x in range(101) for y in range(100)]
    with pytest.raises(RegionError, match="10,000"):
        dpveil.obfuscate(np.zeros((100, 101), np.uint8), "fill", regions=boxes)


@pytest.mark.parametrize("keys", [("regions", "guarantees"), ("request",), ("post_processing",)])
def test_a_certificate_of_too_many_regions_is_refused(tmp_path, keys):
    data = deepcopy(HONEST[ONE])
    for key in keys:
        data[key] = data[key][:1] * (MOST_REGIONS + 1)
    [problem] = dpveil.verify(placed(tmp_path, sealed(data))).problems
    assert "more than 10,000" in problem


def counted(function, calls):
    def called(self, **size):
        calls.append(size)
        return function(self, **size)

    return called


def test_only_so_many_sizes_are_planned_for_one_certificate(monkeypatch):
    """Calibrations and plans take milliseconds to seconds each: a certificate buys a limited number."""
    for method, name in (
        (DCTGaussian(rho=1, neighbourhood=4), "plan"),
        (BitPlanes(rho=1, neighbourhood=4), "bands"),
    ):
        calls = []

        monkeypatch.setattr(type(method), name, counted(getattr(type(method), name), calls))
        sizes = [{"height": 80 + 8 * i, "width": 8, "channels": 1} for i in range(65)]
        assert method.account_of(sizes[:64] * 2, 4) is not None
        assert len(calls) == 64
        assert method.account_of(sizes, 4) is None
        assert len(calls) == 64


def test_shown_numbers_are_never_below_themselves_at_any_size():
    for value in (
        Fraction(10**999),
        Fraction(1, 10**999),
        Fraction(2 * 10**400, 3),
        Fraction(1, 3 * 10**400),
    ):
        total = Guarantee(kind="pure", epsilon=value, relation=Relation("any-image"), scope=Scope("a"))
        assert Fraction(str(total).partition("-DP")[0]) >= value


def test_a_certificate_reads_what_it_writes():
    text = sealed(HONEST[ONE]).decode()
    certificate = parse_certificate(text)
    assert certificate.to_text() == text
    assert certificate.regions[0] == record("box", Box(2, 3, 20, 10), finder="2,3,20,10")
