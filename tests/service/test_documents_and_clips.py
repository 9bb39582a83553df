"""Documents and clips over HTTP: released as by the command line, and by no service with a ledger."""

from __future__ import annotations

import base64
import io
import json
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from clips_made import make_clip
from PIL import Image
from service_client import service, upload
from skimage import data

import dpveil
from dpveil.errors import UsageError
from dpveil.ledger import Ledger, Limit
from dpveil.regions import Faces
from dpveil.service import documents_and_clips
from dpveil.video import make_plan
from dpveil.video.make_plan import analyze

BOX = {"method": "fill", "level": 90, "regions": "8,8,16,16"}


def document(pages: int = 2) -> bytes:
    file = io.BytesIO()
    first, *others = [Image.fromarray(np.full((60, 40, 3), 40 * n, np.uint8)) for n in range(1, pages + 1)]
    first.save(file, "PDF", save_all=True, append_images=others, resolution=72)
    return file.getvalue()


def released(client: httpx.Client, contents: bytes, **settings: Any) -> dict[str, Any]:
    answer = client.post("/v1/releases", files=upload(contents, {**BOX, **settings}))
    assert answer.status_code in (201, 202), answer.text
    told: dict[str, Any] = answer.json()
    while told.get("status") == "working":
        time.sleep(0.2)
        told = client.get(told["job_url"]).json()
    return client.get(told["release_url"]).json() if "release_url" in told else told


def test_documents_and_clips_are_released_verify_and_leave_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    pytest.importorskip("av")
    place = documents_and_clips.IN_MEMORY
    before = set(place.glob("dpveil-*"))
    clip = make_clip(tmp_path / "clip.mp4").read_bytes()
    with service() as (_, client):
        for contents, kind, media_type in (
            (document(), "pdf", "application/pdf"),
            (clip, "mp4", "video/mp4"),
        ):
            told = released(client, contents)
            file, certificate = client.get(told["image_url"]), client.get(told["certificate_url"])
            assert file.headers["content-type"] == media_type
            out = tmp_path / f"out.{kind}"
            out.write_bytes(file.content)
            (tmp_path / f"out.{kind}.certificate.json").write_bytes(certificate.content)
            results = list(dpveil.verify_each(out)) if kind == "pdf" else [dpveil.verify(out)]
            assert {(each.status, each.sound) for each in results} == {("consistent", True)}
            words = client.get(f"/page/releases/{told['id']}").json()
            assert (words["strength"], words["objections"]) == ("strong", [])
            assert words["quotation"]
            covers = " ".join(text.split(":")[0] for text in words["covers"])
            assert kind == "pdf" or covers == "replaced kept lost sound"
        answer = client.post("/v1/releases", files=upload(b"%PDF-1.7 no document", BOX))
        assert (answer.status_code, "dpveil-" in answer.text) == (422, False), "no path of the host is told"
        assert client.post("/v1/releases", files=upload(document(), regions="900,900,9,9")).status_code == 422
    assert set(place.glob("dpveil-*")) == before


def looked_over(client: httpx.Client, contents: bytes, **settings: Any) -> dict[str, Any]:
    answer = client.post("/page/media", files=upload(contents, {**BOX, **settings}))
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = json.loads(answer.text.splitlines()[-1])
    return told


def test_pages_and_tracks_are_shown_before_a_release(tmp_path: Path) -> None:
    clip, place = make_clip(tmp_path / "clip.mp4").read_bytes(), documents_and_clips.IN_MEMORY
    before = set(place.glob("dpveil-*"))
    with service() as (_, client):
        told = looked_over(client, document(6))
        assert (told["of"], len(told["pages"])) == (6, 4)
        first = Image.open(io.BytesIO(base64.b64decode(told["pages"][0])))
        assert (first.size, abs(int(np.asarray(first)[9, 9, 0]) - 40) < 4) == ((40, 60), True)
        told = looked_over(client, clip)
        assert [(one["kind"], len(one["pictures"])) for one in told["tracks"]] == [("box", 3)]
        assert told["plan"]["strength"] == "strong"
        assert told["said"]["by"] == ["a grey box"]
        refused = looked_over(client, clip, regions="faces")["problem"]
        assert refused["type"].endswith("NoRegion")
        assert "dpveil-" not in str(looked_over(client, b"%PDF-1.7 no document")["problem"])
        assert client.post("/page/media", files=upload(b"x", BOX)).status_code == 422
    assert set(place.glob("dpveil-*")) == before


def test_a_clip_that_nobody_waits_for_is_looked_at_no_longer(tmp_path: Path) -> None:
    clip, folder = make_clip(tmp_path / "clip.mp4").read_bytes(), tmp_path / "folder"
    folder.mkdir()
    told = {"folder": str(folder)}

    def look() -> None:
        with documents_and_clips.original_file(told, clip) as (task, progress):
            task.source.unlink()
            folder.rmdir()
            progress("", 1, 2)

    with pytest.raises(UsageError, match="nobody waits"):
        look()


def test_several_plans_of_one_clip_search_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stays changes no track: plans after the first one say what they would have said alone."""
    still = data.astronaut()[:264, 92:356]
    clip = make_clip(tmp_path / "two.mp4", 6, still=np.concatenate([still, still[:, ::-1]], axis=1))
    alone = []
    for stay in ((), (2,)):
        make_plan.FOUND.clear()
        alone.append(analyze(clip, regions=Faces(exclude=stay)))
    monkeypatch.setattr(make_plan, "find_tracks", lambda *_: pytest.fail("it is searched again"))
    again = [analyze(clip, regions=Faces(exclude=stay)) for stay in ((), (2,))]
    assert [plan.to_text() for plan in again] == [plan.to_text() for plan in alone]


def test_a_picture_is_one_whatever_its_first_bytes_hold() -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", comment=b"%PDF-1.7")
    assert [documents_and_clips.format_of_release(one) for one in (file.getvalue(), document())] == [
        "",
        "pdf",
    ]


def test_no_ledger_pays_for_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url, create=True) as ledger, service(ledger=ledger) as (_, client):
        ledger.set_limit("album", Limit(kind="pure", epsilon=1))
        answer = client.post("/v1/releases", files=upload(document(), BOX, subject="album"))
        assert (answer.status_code, documents_and_clips.UNPAID in answer.text) == (422, True)
        answer = client.post("/page/media", files=upload(document(), BOX))
        assert (answer.status_code, documents_and_clips.UNPAID in answer.text) == (422, True)
