"""Plans as JSON: what people edit, and what strangers send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.video.plan.made import face, facts, plan, whole

from dpveil.errors import DPVeilError, RegionError, RegionsDiffer, UsageError
from dpveil.faces.attributes_method import Attributes
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPSVD, DPPix
from dpveil.postprocessing import parse
from dpveil.video.facts import Key
from dpveil.video.plan import parse_plan, read_plan
from dpveil_audit.faces.made_heads import made_heads

NEAR = DPPix(epsilon=1, block=16, neighbourhood=16)
TWO = (face(1, Key(0, 100, 100, 60, 80), Key(40, 120, 100, 60, 80, 4, -20)), face(2, Key(9, 300, 9, 60, 80)))


def edited(change: Any, method: Any = NEAR) -> Any:
    """Return the plan after a person's edit of its JSON."""
    data = json.loads(plan(method, *TWO).to_text())
    change(data)
    return parse_plan(json.dumps(data))


@pytest.mark.parametrize(
    "made",
    [
        plan(NEAR, *TWO, cuts=(3, 50), post_processing=(parse("median:3"),), keep_audio=True),
        plan(Attributes.of({"attributes": "gender=4"}), *TWO),
        plan(NEAR, whole(), request=("whole",)),
        plan(NEAR, face(1, person=3), facts=facts(1, steps=(), audio=False, dropped=("2 streams of data",))),
    ],
)
def test_a_plan_is_read_as_it_was_written(made):
    text = made.to_text()
    again = parse_plan(text)
    assert again == made
    assert again.to_text() == text
    assert again.sha256 == made.sha256
    assert again.total == made.total


@pytest.mark.parametrize(("kind", "shows"), [("face", True), ("text", False), ("box", True), ("dog", False)])
def test_a_track_is_added_by_hand_with_few_fields(kind, shows):
    hand = {"number": 9, "kind": kind, "keys": [{"frame": 3, "x": 9, "y": 9, "w": 40, "h": 50}]}
    made = edited(lambda d: d["tracks"].insert(0, hand), Attributes())
    assert [track.number for track in made.tracks] == [1, 2, 9]
    assert made.scene.shows_face(made.tracks[2]) is shows
    assert made.tracks[2].end == "left"


EDITS: list[tuple[Any, str]] = [
    (lambda d: d.update(metod="x"), "metod = 'x' is unknown: did you mean method?"),
    (lambda d: d["clip"].update(name="/etc/passwd"), "clip = '/etc/passwd' is no name"),
    (lambda d: d["clip"].update(steps=[[0, 5]]), "clip.steps[0][0] = 0 "),
    (lambda d: d["clip"].update(audio=1), "clip.audio = 1 "),
    (lambda d: d.update(parameters={"epsilonn": 1}), "parameters.epsilonn = 1 is unknown: did you mean"),
    (lambda d: d.update(method="latent", parameters={"epsilon": 1, "codec": "/etc/passwd"}), "codec"),
    (lambda d: d.update(method="attributes", parameters={"gallery": "g.safetensors"}), "gallery"),
    (lambda d: d.update(tracks=[]), "there is no track"),
    (lambda d: [t.update(visible=True) for t in d["tracks"]], "no track is replaced"),
    (lambda d: d["tracks"][1].update(number=1), "tracks[1].number = 1 is given to two tracks"),
    (
        lambda d: d["tracks"][1].update(finder="detected car"),
        "tracks[1].finder = 'detected car' finds no faces",
    ),
    (lambda d: d["tracks"][0]["keys"][1].update(w=0), "tracks[0].keys[1].w = 0 "),
    (lambda d: d["tracks"][0]["keys"][1].pop("h"), "tracks[0].keys[1].h is missing"),
    (
        lambda d: [t.update(person=1, kind=k) for t, k in zip(d["tracks"], ("face", "text"), strict=True)],
        "tracks[1].person = 1 is of track 1, a face, and of track 2",
    ),
]


def test_what_is_wrong_is_named_in_one_line():
    for change, message in EDITS:
        with pytest.raises(DPVeilError) as refused:
            edited(change)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 600
        assert refused.value.exit_code == (1 if isinstance(refused.value, RegionError) else 2)


def test_other_texts_are_one_clear_line():
    number = '{"schema": "dpveil.video-plan/1", "clip": {}, "method": "fill", "tracks": ' + "9" * 5000 + "}"
    for text in ("", "[]", "{", "null", '{"schema": NaN}', "[" * 100_000, number, '{"\\u001b[2J": 1}'):
        with pytest.raises(UsageError) as refused:
            parse_plan(text)
        assert "\n" not in str(refused.value)
        assert str(refused.value).isprintable()


def test_any_change_of_a_value_is_refused_or_read_and_never_ends_otherwise():
    data = json.loads(plan(NEAR, *TWO, cuts=(5,)).to_text())
    rng = np.random.default_rng(17)
    values = [None, True, -1, 0, 1 << 70, 1.5, "", "x", "\u202e", [], [1], {}, {"a": 1}, "1/0", [[1, 1]]]

    def places(node: Any) -> list[tuple[Any, Any]]:
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        return [pair for name, each in list(inner) for pair in [(node, name), *places(each)]]

    read = 0
    for _ in range(60):
        copy = json.loads(json.dumps(data))
        found = places(copy)
        holder, name = found[rng.integers(len(found))]
        holder[name] = values[rng.integers(len(values))]
        try:
            parse_plan(json.dumps(copy))
            read += 1
        except DPVeilError as error:
            assert "\n" not in str(error)  # noqa: PT017  it may also be read
    assert 3 < read < 100


def test_files(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    path.write_text(plan(NEAR, *TWO).to_text())
    assert read_plan(path) == plan(NEAR, *TWO)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    for wrong in (link, tmp_path, tmp_path / "none.json"):
        with pytest.raises(UsageError, match="plan = "):
            read_plan(wrong)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_plan(path)
    monkeypatch.setattr("dpveil.video.plan.MOST_BYTES", 0)
    with pytest.raises(UsageError, match="at most 0"):
        read_plan(path)


def test_a_ledger_compares_what_is_covered(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db", create=True)
    ledger.set_limit("album", Limit("pure", epsilon=100))
    first = plan(
        NEAR, face(1, person=1), face(2, Key(9, 300, 9, 60, 80), person=1), face(3, Key(3, 9, 9, 60, 80))
    )
    assert first.total.epsilon == 2
    ledger.debit("album", first.total, "clip", covered=first.coverage)
    again = plan(replace(NEAR, epsilon=3), *first.tracks)
    ledger.debit("album", again.total, "again", covered=again.coverage)  # the same tracks: costs add
    shown = plan(NEAR, face(1), face(2, Key(9, 300, 9, 60, 80)), face(3, Key(3, 9, 9, 60, 80), visible=True))
    for other in (
        shown,
        plan(NEAR, *first.tracks, keep_audio=True),
    ):
        with pytest.raises(RegionsDiffer):
            ledger.debit("album", other.total, "third", covered=other.coverage)
    elsewhere = plan(NEAR, face(1), facts=facts(sha256="cd" * 32))
    ledger.debit("album", elsewhere.total, "fourth", covered=elsewhere.coverage)


def test_what_is_covered_does_not_follow_from_numbers():
    one, other = Key(3, 100, 100, 60, 80), Key(3, 300, 9, 60, 80, 4, -20)
    made = plan(NEAR, face(1, one), face(2, other), face(3, Key(3, 200, 9, 60, 80)))
    again = plan(NEAR, face(7, Key(3, 200, 9, 60, 80)), face(8, one), face(9, other))
    assert made.coverage == again.coverage
    two = plan(NEAR, face(1, one), face(2, other))
    assert made.coverage != two.coverage
    assert two.coverage == plan(NEAR, *two.tracks, face(3, Key(3, 200, 9, 60, 80), visible=True)).coverage


def test_the_shape_of_a_region_is_covered_where_its_finder_decides_it():
    heads = Attributes(gallery=made_heads(), placing="box", protect="head")
    by_hand, by_faces = (face(1, kind="text", finder=finder) for finder in ("text by hand", "faces"))
    box, head = (plan(heads, track).scene.spots(0)[0].region for track in (by_hand, by_faces))
    assert (box.box, box.mask) != (head.box, head.mask)
    assert plan(heads, by_hand).coverage != plan(heads, by_faces).coverage
    assert plan(NEAR, by_hand).coverage == plan(NEAR, by_faces).coverage


def test_where_singular_vectors_show_what_they_are_of_counts():
    vectors, track = DPSVD(epsilon=1, rank=2), face(1, Key(0, 100, 100, 60, 80), person=1)
    wider = face(2, Key(9, 300, 9, 90, 120), person=1)
    alone = [replace(one, person=None) for one in (track, wider)]
    assert plan(vectors, track, wider).coverage != plan(vectors, *alone).coverage
    assert plan(NEAR, track, wider).coverage == plan(NEAR, *alone).coverage
