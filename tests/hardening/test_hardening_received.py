"""Received folders: files of every kind, texts that steer terminals, numbers that fill memories, reruns."""

import json
import os
from copy import deepcopy
from pathlib import Path

import pytest
from hardening_certificates import honest, picture, placed, sealed

import dpveil
from dpveil.cli import run
from dpveil.core.certificate import MOST_REGIONS
from dpveil.release.saving import certificate_path

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


@pytest.mark.parametrize("keys", [("regions", "guarantees"), ("request",), ("post_processing",)])
def test_a_certificate_of_too_many_regions_is_refused(tmp_path, keys):
    data = deepcopy(HONEST[ONE])
    for key in keys:
        data[key] = data[key][:1] * (MOST_REGIONS + 1)
    [problem] = dpveil.verify(placed(tmp_path, sealed(data))).problems
    assert "more than 10,000" in problem
