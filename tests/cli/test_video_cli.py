"""Clips on the command line: `dpveil video`, and clips among the inputs of `dpveil obfuscate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("av")

from clips_made import FRAMES, HEIGHT, WIDTH, make_clip

from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil.video import render_job
from dpveil.video.render_job import folder_of
from dpveil.video.verification import verify_clip

Shell = Callable[..., tuple[int, str, str]]
METHOD = ("--method", "dp-pix", "--epsilon", "2", "--block", "8", "--neighbourhood", "4")
COST = "ε = 2 about any 4 pixels (moderate)"
BOX = ("--regions", "0,8,16,16")


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4")


def document(out: str) -> Any:
    return json.loads(out)


def test_a_clip_is_released_verified_and_skipped(shell: Shell, clip: Path, tmp_path: Path) -> None:
    call = ("obfuscate", "clip.mp4", "--out", "private.mp4", *METHOD, *BOX)
    code, out, err = shell(*call)
    clear = "Not hidden: everything else, and where the region was and how it moved. → private.mp4"
    assert code == 0
    assert out == f"1 region replaced in 1 clip; what shows of it is limited to {COST}. {clear}\n"
    assert "gait" not in err
    assert shell("verify", "private.mp4")[0] == 0
    before = (tmp_path / "private.mp4").read_bytes()
    code, out, err = shell(*call, "--json")
    told = document(out)
    assert code == 0
    assert [one["output"] for one in told["skipped"]] == ["private.mp4"]
    assert (tmp_path / "private.mp4").read_bytes() == before
    code, _, err = shell(*call[:-2], "--regions", "8,8,16,16")
    assert code == 1
    assert "exists and is not a release with these settings" in err
    assert shell(*call, "--force")[0] == 0
    assert (tmp_path / "private.mp4").read_bytes() != before


def test_clips_and_photos_go_their_ways_into_one_report(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    make_clip(folder / "a.mp4")
    make_clip(folder / "more" / "b.mkv")
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), 90, np.uint8)).save(folder / "a.jpg")
    (folder / "broken.mov").write_bytes(b"no clip at all")
    code, out, err = shell("obfuscate", "in", "--out", "out", *METHOD, "--regions", "whole", "--json")
    told = document(out)
    assert code == 1, err
    outputs = ["out/a.jpg", "out/a.mp4", "out/more/b.mp4"]
    assert sorted(one["output"] for one in told["released"]) == outputs
    assert [Path(one["input"]).name for one in told["failed"]] == ["broken.mov"]
    assert all((tmp_path / one["certificate"]).is_file() for one in told["released"])
    assert "Traceback" not in err
    code, out, _ = shell("verify", "out", "--json")
    assert [one["status"] for one in document(out)["verified"]] == ["consistent"] * 3
    assert shell("obfuscate", "in", "--out", "out", *METHOD, "--regions", "whole", "--dry-run")[0] == 1


def test_a_dry_run_prices_a_clip_and_writes_nothing(shell: Shell, clip: Path, tmp_path: Path) -> None:
    code, out, _ = shell("obfuscate", "clip.mp4", "--out", "p.mp4", *METHOD, *BOX, "--dry-run", "-v")
    assert code == 0
    assert out == f"clip.mp4  1 region: {COST}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--out", "p.png"), "a clip is released as a clip"),
        (("--out", "o", "--names", "number"), "clips keep their names"),
        (("--out", "p.mp4", "--if-none", "copy"), "whole, or leave it out"),
        (("--out", "p.mp4", "--keep-audio"), "--keep-audio"),
        (("--out", "no/p.mp4"), "no such folder"),
        (("--out", "clip.mp4"), "is one of the inputs"),
        (("--out", "p.mp4", "--jobs", "0"), "--jobs"),
        (("--out", "p.mp4", "--c2pa", "a.pem"), "--c2pa"),
    ],
)
def test_what_clips_cannot_have_is_one_line(
    shell: Shell, clip: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    code, _, err = shell("obfuscate", "clip.mp4", *METHOD, *BOX, *options)
    assert code in (1, 2, 4)
    assert words in err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]


def test_options_of_clips_are_refused_without_any(shell: Shell, tmp_path: Path) -> None:
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), 90, np.uint8)).save(tmp_path / "a.jpg")
    code, _, err = shell("obfuscate", "a.jpg", "--out", "b.png", *METHOD, *BOX, "--keep-audio")
    assert code == 2
    assert "--keep-audio is for clips, and there is none among the inputs" in err


def test_a_plan_is_written_changed_and_rendered(
    shell: Shell, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyze = ("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD, *BOX)
    code, out, err = shell(*analyze, "--sheet", "tracks.png", "--json")
    told = document(out)
    assert code == 0
    assert [track["kind"] for track in told["tracks"]] == ["box"]
    assert told["frames"] == FRAMES
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "tracks.png").stat().st_mode & 0o777 == 0o600
    assert "keep it as private" in err
    with Image.open(tmp_path / "tracks.png") as sheet:
        assert sheet.width > 1000
    code, _, err = shell(*analyze)
    assert code == 4
    assert "it exists already" in err
    plan = json.loads((tmp_path / "plan.json").read_text())
    plan["parameters"]["epsilon"] = 1
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    render = ("video", "render", "plan.json")
    code, out, _ = shell(*render, "--dry-run")
    assert code == 0
    assert "ε = 1 about any 4 pixels" in out
    code, out, err = shell(*render, "--out", "private.mp4")
    assert (code, "ε = 1 about any 4 pixels (strong)" in out) == (0, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("clip.mp4", "plan.json", "private.mp4", "private.mp4.certificate.json"),
        "tracks.png",
    ]
    code, out, _ = shell(*render, "--out", "private.mp4", "--json")
    assert (code, len(document(out)["skipped"])) == (0, 1)
    plan["tracks"][0]["keys"][0]["x"] = 5
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    code, _, err = shell(*render, "--out", "private.mp4")  # the certificate has no places to compare
    assert code == 1
    assert "exists and is not a release with these settings" in err
    plan["tracks"][0]["keys"][0] |= {"x": 0, "frame": 3}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "forgotten"))
    assert shell(*render, "--out", "private.mp4")[0] == 1


def test_a_rendering_is_paid_per_person(shell: Shell, clip: Path, tmp_path: Path) -> None:
    ledger = ("--ledger", "sqlite:///budget.db")
    assert shell("ledger", "limit", "album", "--epsilon", "3", *ledger)[0] == 0
    shell("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD, *BOX)
    call = ("video", "render", "plan.json", *ledger, "--subject", "album")
    code, _, err = shell(*call, "--out", "private.mp4")
    assert code == 0
    assert "price: the clip, epsilon 2" in err
    code, _, err = shell(*call, "--out", "other.mp4")
    assert code == 3
    assert "album has epsilon 1 left" in err
    assert not (tmp_path / "other.mp4").exists()
    assert not folder_of(tmp_path / "other.mp4").exists()


def test_ctrl_c_leaves_what_goes_on(
    shell: Shell, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpveil.video import render_job

    class Stopped(render_job.Writer):
        def write(self, frame: Any) -> None:
            if frame.index == 20:
                raise KeyboardInterrupt
            super().write(frame)

    call = ("obfuscate", "clip.mp4", "--out", "private.mp4", *METHOD, *BOX)
    with monkeypatch.context() as patched:
        patched.setattr(render_job, "Writer", Stopped)
        code, _, err = shell(*call)
    assert code == 130
    assert "the same command goes on, and pays nothing twice" in err
    assert not (tmp_path / "private.mp4").exists()
    assert folder_of(tmp_path / "private.mp4").exists()
    code, _, err = shell(*call[:-1], "8,8,16,16")
    assert code == 4
    assert "was begun and not finished" in err
    monkeypatch.setattr("dpveil.video.clip_in_batch.analyze", lambda *given, **more: pytest.fail("again"))
    assert shell(*call)[0] == 0  # by the plan that was left
    assert not folder_of(tmp_path / "private.mp4").exists()


def test_a_clip_is_signed_and_stays_only_with_that_key(shell: Shell, clip: Path, tmp_path: Path) -> None:
    shell("key", "new", "own.key")
    shell("key", "new", "other.key")
    call = ("obfuscate", "clip.mp4", "--out", "private.mp4", *METHOD, *BOX)
    assert shell(*call, "--sign", "own.key")[0] == 0
    assert shell("verify", "private.mp4", "--trust", "own.key.pub")[0] == 0
    assert shell("verify", "private.mp4", "--trust", "other.key.pub")[0] == 1
    assert shell(*call, "--sign", "own.key")[0] == 0
    code, _, err = shell(*call, "--sign", "other.key")
    assert code == 1
    assert "not one that this key signed" in err


def test_without_pyav_there_is_a_hint(shell: Shell, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    for call in (("obfuscate",), ("video", "analyze")):
        code, _, err = shell(*call, "clip.mp4", "--out", "o.mp4", *METHOD, *BOX)
        assert code in (1, 2)
        assert "pip install 'dpveil[video]'" in err


BOXES = ("--method", "fill", "--regions", "0,8,16,16", "--regions", "20,8,16,16")


@pytest.mark.parametrize("change", ["visible", "moved"])
def test_a_run_does_not_skip_what_was_rendered_by_a_changed_plan(
    shell: Shell, clip: Path, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell("video", "analyze", "clip.mp4", "--out", "plan.json", *BOXES)[0] == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    if change == "moved":
        plan["tracks"][0]["keys"][1]["x"] += 2
    else:
        plan["tracks"][0]["visible"] = True
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "forgotten"))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert shell("video", "render", "plan.json", "--out", "private.mp4")[0] == 0
    code, out, _ = shell("obfuscate", "clip.mp4", "--out", "private.mp4", *BOXES, "--json")
    assert (code, len(document(out)["failed"])) == (1, 1)


def test_a_dry_run_refuses_what_the_ledger_would(shell: Shell, clip: Path, tmp_path: Path) -> None:
    ledger = ("--ledger", "sqlite:///budget.db", "--subject", "album")
    assert shell("ledger", "limit", "album", "--epsilon", "9", *ledger[:2])[0] == 0
    shell("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD, *BOX)
    call = ("video", "render", "plan.json", *ledger)
    assert shell(*call, "--out", "private.mp4")[0] == 0
    assert shell(*call, "--dry-run")[0] == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    plan["tracks"][0]["keys"][0]["x"] += 1
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    other = ("obfuscate", "clip.mp4", "--out", "o.mp4", *METHOD, "--regions", "8,8,16,16", *ledger)
    for tried in ((*call, "--dry-run"), (*call, "--out", "o.mp4"), (*other, "--dry-run")):
        code, _, err = shell(*tried)
        assert code == 3, tried
        assert "this clip was released with other regions before" in err
    assert shell(*call, "--dry-run", "--other-regions")[0] == 0


def test_tracks_are_kept_and_linked(shell: Shell, clip: Path, tmp_path: Path) -> None:
    call = ("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD, *BOX)
    call += ("--regions", "24,8,16,16", "--regions", "8,0,8,8")
    shell(*call, "--keep", "2", "--link", "1,3")
    tracks = json.loads((tmp_path / "plan.json").read_text())["tracks"]
    assert [(one["visible"], one["person"]) for one in tracks] == [(False, 1), (True, None), (False, 1)]
    code, _, err = shell(*call, "--force", "--keep", "7")
    assert (code, "--keep 7 is no track" in err) == (2, True)
    code, _, err = shell(*call, "--force", "--link", "1,2", "--link", "2,3")
    assert (code, "linked twice" in err) == (2, True)


class Two(Detector):
    """Sees the same two faces in every frame."""

    name = "two"
    threshold = Fraction(3, 10)

    @classmethod
    def is_installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        return np.array([[2, 6, 12, 14, 0.9], [28, 6, 12, 14, 0.8]])


def test_numbers_of_faces_choose_who_stays_in_a_clip(
    shell: Shell, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faces_file, "choose", lambda name: Two())
    told = document(shell("faces", "clip.mp4", "--preview", "people.png", "--json")[1])
    assert [one["number"] for one in told["tracks"]] == [1, 2]
    assert clip.with_name("people.png").is_file()
    call = ("obfuscate", "clip.mp4", "--method", "fill", "--regions", "faces")
    for option, shown in (("--except=2", [False, True]), ("--only=2", [True, False])):
        out = f"{option}.mp4"
        assert shell(*call, "--out", out, option)[0] == 0
        certificate = verify_clip(clip.with_name(out)).certificate
        assert certificate is not None
        assert [track.visible for track in certificate.quote.tracks] == shown
        assert len(document(shell(*call, "--out", out, option, "--json")[1])["skipped"]) == 1
        assert shell(*call, "--out", out)[0] == 1
    for wrong in (["--except", "3"], ["--only", "3"], ["--except", "1,2"], ["--only=1", "--regions", "text"]):
        assert shell(*call, "--out", "wrong.mp4", *wrong)[0] == 1
        assert not clip.with_name("wrong.mp4").exists()


def test_no_file_replaces_another_of_the_same_command(shell: Shell, clip: Path, tmp_path: Path) -> None:
    analyze = ("video", "analyze", "clip.mp4", *METHOD, *BOX, "--force")
    code, _, err = shell(*analyze, "--out", "a.png", "--sheet", "./a.png")
    assert (code, "a.png is the plan and the sheet: give each its own name" in err) == (4, True)
    assert shell(*analyze, "--out", "p.mp4.certificate.json")[0] == 0
    plan = (tmp_path / "p.mp4.certificate.json").read_bytes()
    code, _, err = shell("video", "render", "p.mp4.certificate.json", "--out", "p.mp4", "--force")
    assert (code, "is the plan and the release's certificate" in err) == (4, True)
    assert (tmp_path / "p.mp4.certificate.json").read_bytes() == plan
    render = ("video", "render", "p.mp4.certificate.json", "--force")
    clip.rename(tmp_path / "r.mp4.certificate.json")
    code, _, err = shell(*render, "--clip", "r.mp4.certificate.json", "--out", "r.mp4")
    assert (code, "is the clip and the release's certificate" in err) == (4, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "p.mp4.certificate.json",
        "r.mp4.certificate.json",
    ]


# Dry runs over clips say what the run will do: refuse, skip, or go on with what was begun and paid.


LEDGER = ("--ledger", "sqlite:///budget.db", "--subject", "album")
OBFUSCATE = ("obfuscate", "clip.mp4", "--out", "out.mp4", *METHOD, *BOX, *LEDGER)
RENDER = ("video", "render", "plan.json", "--out", "out.mp4", *LEDGER)


@pytest.fixture
def planned(shell: Shell, tmp_path: Path) -> Path:
    """Return a clip with a plan that costs ε = 2, of which an album has 3."""
    clip = make_clip(tmp_path / "clip.mp4")
    assert shell("ledger", "limit", "album", "--epsilon", "3", *LEDGER[:2])[0] == 0
    assert shell("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD, *BOX)[0] == 0
    return clip


def test_places_are_looked_at_and_what_is_finished_is_skipped(shell: Shell, planned: Path) -> None:
    (planned.parent / "mine.mp4").write_bytes(b"mine")
    for name, wanted in (("mine.mp4", 1), ("no/out.mp4", 4), ("clip.mp4", 4)):
        code, _, err = shell(*RENDER[:4], name, *RENDER[5:], "--dry-run")
        assert (code, shell(*RENDER[:4], name, *RENDER[5:])[0]) == (wanted, wanted)
        assert "left 3" not in err
    assert (planned.parent / "mine.mp4").read_bytes() == b"mine"
    assert shell(*RENDER)[0] == 0
    code, _, err = shell(*RENDER, "--dry-run")
    assert code == 0
    assert "skipped clip.mp4" in err
    assert "price:" not in err


@pytest.mark.parametrize("call", [OBFUSCATE, RENDER], ids=["obfuscate", "render"])
def test_a_run_that_was_begun_goes_on_and_costs_nothing(
    shell: Shell, planned: Path, call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(render_job._Job, "write", killed)
        assert shell(*call)[0] == 130
    assert "left 1" in shell("ledger", "show", "album", *LEDGER[:2])[1]
    code, _, err = shell(*call, "--dry-run", "-v")
    assert code == 0
    assert "a rendering was begun and not finished: this goes on with it, and pays nothing twice" in err
    assert "price:" not in err
    assert "nothing would be released" not in err
    assert not (planned.parent / "out.mp4").exists()
    other = tuple("other.mp4" if each == "out.mp4" else each for each in call)
    assert shell(*other, "--dry-run")[0] == 3
    assert shell(*call)[0] == 0
    assert "left 1" in shell("ledger", "show", "album", *LEDGER[:2])[1]
