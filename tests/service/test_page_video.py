"""Plans of clips in the page's module, by node: read and written as dpveil does, changed in few places."""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpveil.catalogue import build
from dpveil.service.page import files
from dpveil.video.facts import Facts, Key, Track
from dpveil.video.plan import VideoPlan, parse_plan

STATIC = Path(files.__file__).parent / "static"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: the modules are not run")

FACTS = Facts(
    sha256="ab" * 32, format="mp4", codec="h264", width=640, height=480, audio=False,
    time_base=Fraction(1, 12800), start=-9007199254740993, steps=((512, 40), (1024, 9), (512, 50)),
)  # fmt: skip


def track(number: int, *frames: int, **more: Any) -> Track:
    keys = tuple(Key(frame, 10 * number + frame, 20, 30, 40, roll=-3) for frame in frames)
    return Track(
        **{
            "number": number,
            "kind": "face",
            "finder": "faces",
            "keys": keys,
            "end": "lost",
            "score": 0.75,
            **more,
        }
    )


def plan(*tracks: Track) -> VideoPlan:
    method = build("dp-pix", {"epsilon": "0.1234567890123456789", "block": 8, "neighbourhood": 4})
    name = 'a "b" 12 {é}.mp4'
    return VideoPlan(clip=name, facts=FACTS, method=method, tracks=tracks, cuts=(40,), request=("faces",))


THREE = plan(track(1, 0, 30), track(2, 35, 38), track(3, 41, 90))


def run(source: str, given: object) -> Any:
    """Return what a module prints; `P` is plan.mjs, and `given` what it is given."""
    script = (
        'import * as P from "./plan.mjs"; import { readFileSync } from "node:fs";'
        f"const given = JSON.parse(readFileSync(0)); console.log(JSON.stringify({source}))"
    )
    call = [str(NODE), "--input-type=module", "-e", script]
    done = subprocess.run(call, check=True, capture_output=True, cwd=STATIC, input=json.dumps(given).encode())
    return json.loads(done.stdout)


def test_a_plan_is_written_as_it_was_read_with_every_digit() -> None:
    text = THREE.to_text()
    assert run("P.write(P.read(given))", text) == text
    digits = text.replace('"1234567890123456789/10000000000000000000"', "0.1234567890123456789")
    assert '"epsilon": 0.1234567890123456789,' in run("P.write(P.read(given))", digits)
    assert parse_plan(run("P.write(P.read(given))", json.dumps(json.loads(text)))) == THREE


def test_changes_are_those_that_were_made() -> None:
    source = (
        "(() => { const plan = P.read(given); const [a, b, c] = plan.tracks; b.visible = true;"
        " P.link(plan, a, c); return P.write(plan); })()"
    )
    changed = parse_plan(run(source, THREE.to_text()))
    assert [(one.person, one.visible) for one in changed.tracks] == [(1, False), (None, True), (1, False)]
    assert [one.keys for one in changed.tracks] == [one.keys for one in THREE.tracks]
    assert changed.settings == THREE.settings


def test_links_join_groups_and_leave_nobody_alone_in_one() -> None:
    linked = plan(track(1, 0, person=7), track(2, 1, person=7), track(3, 2), track(4, 3))
    people = "plan.tracks.map((one) => one.person && one.person.value)"
    source = (
        "(() => { const plan = P.read(given); const [a, b, c, d] = plan.tracks; const seen = [];"
        f" P.link(plan, c, d); seen.push({people}); P.link(plan, d, null); seen.push({people});"
        f" P.link(plan, c, a); seen.push({people}); P.link(plan, a, null); seen.push({people});"
        f" P.link(plan, b, d); seen.push({people}); return seen; }})()"
    )
    assert run(source, linked.to_text()) == [
        [7, 7, 8, 8],
        [7, 7, None, None],
        [7, 7, 7, None],
        [None, 7, 7, None],
        [None, 1, None, 1],
    ]


def changed(**more: object) -> str:
    return json.dumps({**json.loads(plan(track(1, 0, 30)).to_text()), **more})


def test_a_plan_of_names_that_objects_have_changes_nothing_else() -> None:
    text = changed().replace('"schema"', '"__proto__": {"visible": true}, "schema"', 1)
    assert run("[P.write(P.read(given)).includes('__proto__'), ({}).visible ?? null]", text) == [True, None]
