"""The page without a browser: what is served, to whom, and that it says what the plan says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cv2
import httpx
import jinja2
import numpy as np
import pytest
from service_client import SETTINGS, photo, service, upload

from dpveil.assets.file_reference import terms_of
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.notes import Note
from dpveil.core.region import Box, Region
from dpveil.faces import Attributes
from dpveil.ledger import Ledger, Limit
from dpveil.service.keys import LOCAL, Caller, Keys
from dpveil.service.page import files, plan_details
from dpveil.service.page.account import account_json, price_text, prices
from dpveil.service.problems import ServiceError

STATIC = Path(files.__file__).parent / "static"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: the modules are not run")


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text in scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline, self._within = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = tag if tag in ("script", "style") else ""

    def handle_data(self, data: str) -> None:
        self.inline += data.strip() if self._within else ""

    def handle_endtag(self, tag: str) -> None:
        self._within = ""


def page(**told: Any) -> str:
    return files.page(**{"version": "1", "keys": True, "ledger": True, **told})


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    found = Tags(page())
    assert found.inline == ""
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        for name in ("src", "href", "action"):
            value = attributes.get(name) or ""
            assert not value or value.startswith("#") or value in files.PATHS, (tag, value)


def test_texts_on_the_page_are_escaped_and_a_missing_one_is_an_error() -> None:
    hostile = "<script>alert(1)</script>"
    assert hostile not in page(version=hostile)
    assert html.escape(hostile) in page(version=hostile)
    with pytest.raises(jinja2.UndefinedError):
        files.page(version="1")


def run_module(source: str) -> bytes:
    command = [str(NODE), "--input-type=module", "-e", source]
    return subprocess.run(command, check=True, capture_output=True, cwd=STATIC).stdout


@needs_node
def test_names_of_downloads_are_safe_and_no_two_alike() -> None:
    given = [
        "../../etc/passwd.png", "a.jpg", "A.png", ".hidden.png", "CON.png", "",
        "x\u202egpj.exe", "<img src=x>.png", "C:\\photos\\b.jpeg", "a" * 300 + ".png", "\x00\n.png",
        "…", "Zoë 家.heic",
    ]  # fmt: skip
    source = 'import { releaseNames } from "./names.mjs"; console.log(JSON.stringify(releaseNames(GIVEN)))'
    names = json.loads(run_module(source.replace("GIVEN", json.dumps(given))))
    assert names[:6] == [
        "passwd.private.png", "a.private.png", "A-2.private.png", "hidden.private.png",
        "photo-CON.private.png", "photo.private.png",
    ]  # fmt: skip
    assert names[-1] == "Zoë 家.private.png"
    assert len({name.lower() for name in names}) == len(given)
    for name in names:
        assert re.fullmatch(
            r"[^/\\:<>|?*\x00-\x1f\u202e.][^/\\:<>|?*\x00-\x1f\u202e]*\.private\.png", name
        ), name
        assert len(name) < 110


def test_outlines_enclose_exactly_what_is_replaced() -> None:
    rows, columns = np.mgrid[:60, :50]
    head = ((columns - 24) / 20) ** 2 + ((rows - 28) / 25) ** 2 < 1
    head[20:26, 20:25] = False  # a hole
    head[53:, 10:14] = True  # and a part of its own
    lines = plan_details.outlines(Region(Box(7, 11, 50, 60), head))
    assert len(lines) == 3
    # Pixels whose middles are within the polygons by the even-odd rule, at eight times the size.
    canvas = np.zeros((80 * 8, 64 * 8), np.uint8)
    cv2.fillPoly(canvas, [np.array(line) * 8 for line in lines], 1)
    inside = canvas[4::8, 4::8].astype(bool)
    wanted = np.zeros_like(inside)
    wanted[11:71, 7:57] = head
    assert (inside != wanted).sum() <= 0.02 * wanted.sum()
    bounds = np.concatenate([np.array(line) for line in lines])
    where = np.argwhere(wanted)
    assert bounds.min(0).tolist() == where.min(0)[::-1].tolist()
    assert bounds.max(0).tolist() == (where.max(0)[::-1] + 1).tolist()


def test_keys_are_needed_for_everything_but_the_files(tmp_path: Path) -> None:
    keys, key = Keys().new("shop", ["studio/shop"], 1000)
    keys.write(tmp_path / "keys.json")
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.set_limit("studio/shop", Limit(kind="pure", epsilon=3))
        with service(fake=True, ledger=ledger, keys=tmp_path / "keys.json") as (_, client):
            assert 'id="key"' in client.get("/").text
            for path in ("/page/offers", "/page/budget", f"/page/releases/{'x' * 32}"):
                assert client.get(path).status_code == 401
            assert client.post("/page/plan", files=upload(b"x", SETTINGS)).status_code == 401
            paths = client.get("/openapi.json").json()["paths"]
            for path, method in ((path, method) for path, row in paths.items() for method in row):
                status = client.request(method, path.replace("{id}", "x" * 32)).status_code
                assert status == (200 if path in ("/healthz", "/readyz") else 401), path
            check_budget(client, {"authorization": f"Bearer {key}"})


def check_budget(client: httpx.Client, headers: dict[str, str]) -> None:
    own = client.get("/page/budget", headers=headers).json()
    assert (own["subject"], own["left"]) == ("studio/shop", "studio/shop has ε 3 of 3 left")
    other = client.get("/page/budget?subject=studio", headers=headers)
    assert other.status_code == 403


# What the page says of a budget, and its warnings: from data, in words for people.


ANY = Relation("any-image")


def costs(epsilon: Any, relation: Relation = ANY, **more: Any) -> Guarantee:
    kind = "approximate" if more else "pure"
    return Guarantee(kind=kind, epsilon=epsilon, relation=relation, scope=Scope("a photo"), **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    with Ledger(f"sqlite:///{tmp_path}/budget.db", create=True) as ledger:
        ledger.set_limit("studio", Limit(kind="pure", epsilon=5))
        ledger.set_limit("studio/album", Limit(kind="pure", epsilon=4))
        ledger.set_limit("other", Limit(kind="approximate", epsilon=2, delta="1e-6"))
        ledger.reserve("studio/album", costs(1), "one").commit()
        yield ledger


KEY = Caller(number="1", name="shop", subjects=("studio/album",), rate=10)


def test_what_is_left_and_what_cannot_be_paid(ledger: Any) -> None:
    asked = prices([price_text(costs(epsilon)) for epsilon in (0, 2, 4)])
    found = account_json(ledger, LOCAL, "studio/album", asked)
    assert found["left"] == "studio has ε 4 of 5 left; studio/album has ε 3 of 4 left"
    assert found["subjects"] == ["other", "studio", "studio/album"]
    assert found["problems"] == ["", "", "This release costs ε 4, and studio/album has 3 left."]
    assert ledger.show("studio/album").to_json()["spent"]["epsilon"] == 1, "nothing was spent to tell"


def test_a_key_sees_its_own_subjects_alone(ledger: Any) -> None:
    ledger.reserve("studio", costs("3.5"), "two").commit()
    found = account_json(ledger, KEY, None, prices([price_text(costs(2))]))
    assert (found["subject"], found["subjects"]) == ("studio/album", ["studio/album"])
    above = "; a budget above it may refuse, and is not shown to this key"
    assert found["left"] == f"studio/album has ε 3 of 4 left{above}"
    assert found["problems"] == [""], "paying decides"
    with pytest.raises(ServiceError, match="may not spend"):
        account_json(ledger, KEY, "studio", [])
    below = account_json(ledger, Caller(number="1", name="shop", subjects=("studio/new",), rate=10), None, [])
    assert below["left"] == "studio/new is paid from a budget that is not shown to this key and may refuse"


def test_the_page_asks_over_http(ledger: Any) -> None:
    with service(fake=True, ledger=ledger) as (_, client):
        asked = [
            ("subject", "studio/album"),
            ("price", price_text(costs(1))),
            ("price", price_text(costs(9))),
        ]
        found = client.get("/page/budget", params=asked)
        assert [bool(problem) for problem in found.json()["problems"]] == [False, True]
        assert client.get("/page/budget", params=[("price", "x")]).status_code == 400
        assert client.get("/page/budget", params={"subject": "a//b"}).status_code == 422


def test_a_plan_says_by_what_each_region_is_replaced(client: Any) -> None:
    settings = {"method": "attributes", "regions": ["object:1,1,9,9", "8,8,40,30"]}
    said = client.post("/page/plan", files=upload(photo(), settings)).json()["said"]
    assert said["by"] == ["a grey box", "a synthetic face"]
    assert said["price"] == "0 0 0 0/any-image"
    research = any("non-commercial" in terms for terms in terms_of([Attributes()]).values())
    assert any("non-commercial" in note for note in said["notes"]) == research
    ways = client.get("/page/offers").json()["ways"]
    assert ("rendered" in ways) == research, "it is the way out where faces are for research alone"
    drawn = {**settings, **ways.get("rendered", ways["faces"])["settings"]}
    said = client.post("/page/plan", files=upload(photo(), drawn)).json()["said"]
    assert not any("non-commercial" in note for note in said["notes"])
    made = client.post("/v1/releases", files=upload(photo(), settings)).json()
    origins = [region["origin"]["kind"] for region in made["certificate"]["regions"]]
    assert origins == ["object", "box"]


@needs_node
def test_photos_are_sent_without_their_names_and_a_busy_service_is_asked_again() -> None:
    source = """
    import { plan, release, useKey } from "./api.mjs";
    const asked = [];
    const refused = { title: "no", hint: "pay", type: "a:Budget" };
    const answers = [[503, { title: "full" }], [200, { fine: true }], [403, refused]];
    globalThis.fetch = async (path, { headers, body }) => {
      asked.push([path, headers, [...body].map(([part, value]) => [part, value.name ?? value])]);
      const [status, told] = answers.shift();
      return new Response(JSON.stringify(told), { status, headers: { "retry-after": "0.01" } });
    };
    const photo = new File(["x"], "secret name.png");
    useKey(" key ");
    const planned = await plan(photo, { epsilon: "1" });
    const told = ({ told, kind, status }) => [told, kind, status];
    const problem = await release(photo, {}, "again").catch(told);
    console.log(JSON.stringify([asked, planned, problem]));
    """
    asked, planned_, problem = json.loads(run_module(source))
    parts = [["photo", "photo"], ["settings", '{"epsilon":"1"}']]
    plan = ["/page/plan", {"authorization": "Bearer key"}, parts]
    assert asked[:2] == [plan, plan]
    assert asked[2][:2] == ["/v1/releases", {"idempotency-key": "again", "authorization": "Bearer key"}]
    assert len(asked) == 3
    assert planned_ == {"fine": True}
    assert problem == ["no: pay", "Budget", 403]


def test_settings_that_notes_name_are_said_as_the_page_does() -> None:
    note = Note("hair stays; {protect} replaces it, too", protect="head")
    for text in (note, str(note)):
        said = plan_details.warnings([text])["warnings"]
        assert said == ["hair stays; another choice under “Replace with” replaces it, too"]
