"""The program from its first command to its last: exit codes, full disks, interruption.

What hangs on a process, its streams and its signals is seen in a process of its own; the rest in this one.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.cli import run
from dpveil.faces.attributes_method import Attributes

PROGRAM = [sys.executable, "-c", "from dpveil.cli import main; main()"]
GOOD = ["--method", "dp-pix", "--epsilon", "2", "--block", "8", "--neighbourhood", "16"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in/sub").mkdir(parents=True)
    levels = (np.arange(20 * 24 * 3) % 251).astype(np.uint8).reshape(20, 24, 3)
    for name in ("in/a.png", "in/sub/b.jpg"):
        Image.fromarray(levels).save(name)
    return tmp_path


def dpveil_(*arguments, **more):
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.fixture
def here(place, capsys):
    """Runs the same in this process."""

    def call(*arguments):
        code = run(arguments)
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return call


def test_release_verify_rerun_edit(place, here):
    done = dpveil_("obfuscate", "in", "--out", "out", *GOOD, "--json")
    assert (done.returncode, len(json.loads(done.stdout)["released"])) == (0, 2)
    assert dpveil_("verify", "out").returncode == 0
    again = here("obfuscate", "in", "--out", "out", *GOOD, "--json")
    assert (again.returncode, len(json.loads(again.stdout)["skipped"])) == (0, 2)
    certificate = Path("out/sub/b.jpg.certificate.json")
    certificate.write_text(
        certificate.read_text(encoding="utf-8").replace('"epsilon": 2', '"epsilon": 1'), encoding="utf-8"
    )
    edited = here("verify", "out", "--json")
    assert edited.returncode == 1
    assert [Path(e["output"]).name for e in json.loads(edited.stdout)["failed"]] == ["b.jpg"]
    third = here("obfuscate", "in", "--out", "out", *GOOD)
    assert third.returncode == 1
    assert "Traceback" not in done.stderr + again.stderr + edited.stderr + third.stderr


def test_a_terminal_shows_a_bar_and_a_pipe_does_not(place, here):
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    command = [*PROGRAM, "obfuscate", "in", "--out", "out", *GOOD]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, text=True, check=False)
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "releasing" in shown
    assert "2/2" in shown
    assert done.stdout.startswith("2 photos replaced as a whole; ")
    assert "releasing" not in here("obfuscate", "in", "--out", "out", *GOOD).stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_answer_that_cannot_be_written_is_one_line(place):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr == "dpveil: cannot go on: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_early_is_no_traceback(place, unbuffered):
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    command = [*PROGRAM, "methods"]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, env=environment, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGTERM, 2)]
)
def test_an_interrupted_batch_leaves_whole_pairs_only(place, number, jobs):
    big = np.zeros((800, 1000, 3), np.uint8)
    Image.fromarray(big).save("one.png")
    for index in range(200):
        os.link("one.png", f"in/{index:03}.png")
    command = [*PROGRAM, "obfuscate", "in", "--out", "out", *GOOD, "--json", "--jobs", str(jobs)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not list(Path().glob("out/0*.png")):
        pass
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    report = json.loads(out)
    assert running.returncode == 130
    assert err.count("interrupted") == 1
    assert "Traceback" not in err
    assert sum(map(len, report.values())) == 202
    assert 0 < len(report["released"]) < 202
    images = sorted(str(p) for p in Path("out").rglob("*.png"))
    assert images == sorted(entry["output"] for entry in report["released"])
    assert all(dpveil.verify(image).publishable for image in images)
    assert {p.suffix for p in Path("out").rglob("*") if p.is_file()} == {".png", ".json"}


def test_the_demonstration_makes_a_legible_sheet_and_consistent_releases(here):
    pytest.importorskip("skimage")
    done = here("demo", "--out", "show")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("look at show/sheet.png")
    releases = sorted(Path("show/releases").glob("*epsilon*.png"))
    assert len(releases) == 12
    assert all(dpveil.verify(release).publishable for release in releases)
    assert here("verify", "show/releases").returncode == 0
    sheet = np.asarray(Image.open("show/sheet.png"))
    assert sheet.shape[0] > 1000
    assert sheet.shape[1] > 1000
    assert here("demo", "--out", "show").returncode == 0
    assert len(sorted(Path("show/releases").glob("*epsilon*.png"))) == 12
    drawn = dpveil.verify(next(Path("show/releases").glob("attributes-epsilon-1.png"))).certificate
    assert drawn.parameters["gallery"] == str(Attributes().gallery)
    Path("mine").mkdir()
    Path("mine/sheet.png").write_bytes(b"mine")
    done = here("demo", "--out", "mine")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "it exists and is not of an earlier demonstration: choose another --out" in done.stderr
    assert [path.name for path in Path("mine").iterdir()] == ["sheet.png"]
