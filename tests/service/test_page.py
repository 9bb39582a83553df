"""The page without a browser: what is served, to whom, and that it says what the plan says."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
import shutil
import subprocess
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cv2
import httpx
import jinja2
import numpy as np
import pytest
from service_client import SETTINGS, photo, service, upload

import dpveil
from dpveil.accounting.meaning import NONE
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.ledger import Ledger, Limit
from dpveil.release.words import LOW
from dpveil.service.keys import Keys
from dpveil.service.page import files, planned
from dpveil.service.page.offers import offers
from dpveil.service.page.planned import SAID

STATIC = Path(files.__file__).parent / "static"
MODULES = sorted(STATIC.glob("*.mjs"))
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: the modules are not run")
MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc")
STORES = ("localStorage", "sessionStorage", "indexedDB", "caches.", "document.cookie", "serviceWorker")


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


def page(path: str = files.INDEX, **told: Any) -> str:
    return files.page(path, **{"version": "1", "keys": True, "ledger": True, **told})


@pytest.mark.parametrize("path", files.PAGES)
def test_pages_have_nothing_inline_and_nothing_from_elsewhere(path: str) -> None:
    found = Tags(page(path))
    assert found.inline == ""
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        for name in ("src", "href", "action"):
            value = attributes.get(name) or ""
            assert not value or value.startswith("#") or value in files.PATHS, (tag, value)


def test_every_file_is_in_the_table_and_asks_for_no_other() -> None:
    assert {*files.TABLE, *files.PAGES.values()} == {path.name for path in STATIC.iterdir()}
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'(?:from|import)\s*\(?"([^"]+)"', text):
            assert name.removeprefix("./") in files.TABLE, (path.name, name)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
        assert not [word for word in (*MARKUP, *STORES) if word in text], path.name
    assert not re.search(r"url\(|@import", (STATIC / "page.css").read_text(encoding="utf-8"))


def test_elements_that_the_modules_ask_for_are_on_the_page() -> None:
    made = {"layer", "slider"}
    for path in MODULES:
        where = "/video" if path.name == "video.mjs" else files.INDEX
        ids = {attributes["id"] for _, attributes in Tags(page(where)).tags if "id" in attributes}
        for name in re.findall(r'\$\("([^"]+)"\)', path.read_text(encoding="utf-8")):
            assert name in ids | made, (path.name, name)


@needs_node
def test_modules_parse() -> None:
    for path in MODULES:
        subprocess.run([str(NODE), "--check", str(path)], check=True, capture_output=True)


def test_texts_on_the_page_are_escaped_and_a_missing_one_is_an_error() -> None:
    hostile = "<script>alert(1)</script>"
    assert hostile not in page(version=hostile)
    assert html.escape(hostile) in page(version=hostile)
    with pytest.raises(jinja2.UndefinedError):
        files.page(files.INDEX, version="1")


def test_key_and_payer_are_asked_for_only_where_there_are_any() -> None:
    assert 'id="key"' not in page(keys=False)
    assert 'id="key"' in page()
    assert 'id="subject"' not in page(ledger=False)
    assert 'id="subject"' in page()


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


@needs_node
def test_commands_that_the_page_shows_name_one_file_in_a_shell() -> None:
    names = ["a.png", "my photo.png", "it's $(ls) `x`.png", "-rf.png", "Zoë.png"]
    source = 'import { quoted } from "./names.mjs"; console.log(JSON.stringify(NAMES.map(quoted)))'
    shown = json.loads(run_module(source.replace("NAMES", json.dumps(names))))
    assert shown[:2] == ["a.png", "'my photo.png'"]
    assert [shlex.split(text) for text in shown] == [[name.replace("-rf", "./-rf")] for name in names]


@needs_node
def test_archives_are_read_by_others() -> None:
    source = """
    import { zipped } from "./zip.mjs";
    const text = (words) => new TextEncoder().encode(words);
    const big = new Uint8Array(300000).map((_, n) => (n * n) % 251);
    const files = [["Zoë.png", big], ["empty", text("")], ["a/b.json", text("{}")]];
    for (const part of zipped(files.map(([name, bytes]) => ({ name, bytes })))) process.stdout.write(part);
    """
    with zipfile.ZipFile(io.BytesIO(run_module(source))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["Zoë.png", "empty", "a/b.json"]
        assert archive.read("Zoë.png") == bytes((n * n) % 251 for n in range(300_000))
        assert archive.read("empty") == b""
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


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


@needs_node
def test_boxes_by_hand_stay_within_the_photo() -> None:
    source = """
    import { between, middle, moved } from "./boxes.mjs";
    const size = [100, 60];
    const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    const seen = [middle(size), middle([1, 1]), between([90.4, -5], [-3, 200], size)];
    let box = middle(size);
    for (let n = 0; n < 400; n += 1) {
      box = moved(box, keys[(n * n + (n >> 3)) % 4], n % 3 === 0, size);
      seen.push(box);
    }
    for (const shift of [false, true]) for (const key of keys) {
      box = middle(size);
      for (let n = 0; n < 90; n += 1) seen.push(box = moved(box, key, shift, size));
    }
    console.log(JSON.stringify([seen, moved(box, "a", false, size)]));
    """
    seen, other = json.loads(run_module(source))
    assert seen[:3] == [[38, 23, 25, 15], [0, 0, 1, 1], [0, 0, 90, 60]]
    assert other is None
    for x, y, w, h in seen[2:]:
        assert Box(x, y, w, h).inside(100, 60)


def test_outlines_enclose_exactly_what_is_replaced() -> None:
    rows, columns = np.mgrid[:60, :50]
    head = ((columns - 24) / 20) ** 2 + ((rows - 28) / 25) ** 2 < 1
    head[20:26, 20:25] = False  # a hole
    head[53:, 10:14] = True  # and a part of its own
    lines = planned.outlines(Region(Box(7, 11, 50, 60), head))
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


class TestServed:
    """What the application answers."""

    def test_every_file_with_a_strict_policy(self, client: Any) -> None:
        for path in files.PATHS:
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-security-policy"] == files.POLICY
            assert answer.headers["x-content-type-options"] == "nosniff"
            html = "text/html; charset=utf-8"
            media = html if path in files.PAGES else files.TABLE[path.rpartition("/")[2]]
            assert answer.headers["content-type"] == media
        assert "'unsafe" not in files.POLICY
        assert {part.split()[0] for part in files.POLICY.split("; ")} >= {
            "base-uri",
            "frame-ancestors",
            "form-action",
        }

    def test_nothing_else_of_the_folder(self, client: Any) -> None:
        for name in (
            "index.html",
            "../routes.py",
            "%2e%2e/routes.py",
            "..%2froutes.py",
            "page.css/",
            "PAGE.CSS",
        ):
            assert client.get(f"/page/{name}").status_code == 404

    def test_the_plan_is_the_plan_of_the_service(self, client: Any) -> None:
        contents = photo(seed=6)
        shown = client.post("/page/plan", files=upload(contents)).json()
        assert shown["plan"] == client.post("/v1/plan", files=upload(contents)).json()
        assert shown["size"] == [64, 48]
        assert shown["outlines"] == [[[[8, 8], [40, 8], [40, 32], [8, 32]]]]
        assert (shown["kept"], shown["doubtful"]) == ([], [])
        said, total = (
            shown["said"],
            dpveil.plan(Photo(np.zeros((48, 64, 3), np.uint8)), "fill", regions="8,8,32,24"),
        )
        assert said["total"] == "20-DP, m-pixels (m = 16)"
        assert said["each"] == ["costs ε 20, for any 16 pixels alone"]
        assert said["free"] is False
        assert said["cost"] == "One region is replaced."
        assert said["price"] == "20000000 400000000000000 0 0/m-pixels:16"
        assert said["by"] == [""]
        assert said["warnings"]
        assert shown["said"]["warnings"] != shown["plan"]["warnings"], "in words of the page"
        assert dict(said["bounds"])["2"] == "100 %"
        assert planned.told(total, {}, {})["said"]["free"]

    def test_bounds_are_about_all_that_is_replaced(self, client: Any) -> None:
        settings = {"method": "dp-pix", "epsilon": 1, "block": 8, "regions": ["0,0,8,8", "20,20,16,16"]}
        said = client.post("/page/plan", files=upload(photo(), settings)).json()["said"]
        assert (said["total"], said["each"]) == ("2-DP, any-image", ["costs ε 1"] * 2)
        assert dict(said["bounds"])["2"] == "88.08 %"
        assert said["cost"] == "2 regions are replaced. What they cost adds up."
        assert said["sentence"].startswith("Together: moderate. Of two candidates")
        assert "88.08 %" in said["sentence"], "as the table says"

    def test_a_problem_is_told_in_the_same_words(self, client: Any) -> None:
        wrong = upload(photo(), regions="0,0,999,9")
        shown, told = (client.post(path, files=wrong) for path in ("/page/plan", "/v1/plan"))
        assert (shown.status_code, shown.json()) == (told.status_code, told.json())
        assert shown.status_code == 422

    def test_a_certificate_in_words(self, client: Any) -> None:
        made = client.post("/v1/releases", files=upload(photo(seed=7))).json()
        words = client.get(f"/page/releases/{made['id']}").json()
        assert words["total"] == "20-DP, m-pixels (m = 16)"
        assert words["strength"] == made["certificate"]["strength"]
        assert words["covers"] == ["box: 32×24 pixels at 8,8, 3 channels"]
        assert SAID[LOW[NONE]] in words["warnings"]
        assert "everything outside the region" in words["in_the_clear"]
        assert words["objections"] == ["practically none"]
        for other in ("x" * 32, "short"):
            assert client.get(f"/page/releases/{other}").status_code == 404

    def test_offers_are_those_of_the_library(self, client: Any) -> None:
        told = client.get("/page/offers").json()
        assert told == offers()
        assert [way["name"] for way in told["ways"]][-2:] == ["drawn", "fill"]
        drawn = told["ways"][-2]
        assert drawn["settings"] == {"method": "attributes", "gallery": "drawn"}
        gender = drawn["attributes"][0]
        assert (gender["name"], gender["values"]) == ("gender", ["male", "female"])
        assert gender["budgets"][1] == {"epsilon": "1", "kept": "73 %"}
        for way in told["ways"]:
            planned_ = dpveil.plan(
                Photo(np.zeros((64, 64, 3), np.uint8)), **{**way["settings"], "regions": "8,8,40,40"}
            )
            assert planned_.total.epsilon == 0  # nothing is kept unless somebody chooses


class TestOtherSites:
    """What keeps pages of other sites from spending budget: they can send forms to this machine."""

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ([("origin", "https://evil.example")], 403),
            ([("origin", "null")], 403),
            ([("origin", "")], 403),
            ([("origin", "http://[x")], 403),
            ([("origin", "http://localhost:1")], 403),
            ([("origin", "OWN"), ("origin", "http://evil.example")], 403),
            ([("origin", "http://evil.example"), ("origin", "OWN")], 403),
            ([("sec-fetch-site", "cross-site")], 403),
            ([("sec-fetch-site", "same-site")], 403),
            ([("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")], 403),
            ([("sec-fetch-site", "none, cross-site")], 403),
            ([("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 403),
            ([("host", "evil.example")], 421),
            ([("host", "localhost.evil.example:80")], 421),
            ([("origin", "OWN"), ("sec-fetch-site", "same-origin")], 200),
            ([("host", "[::1]:8000")], 200),
        ],
    )
    def test_they_ask_nothing(self, client: Any, headers: list[tuple[str, str]], status: int) -> None:
        own = str(client.base_url).rstrip("/")
        given = [(name, value.replace("OWN", own)) for name, value in headers]
        for path in ("/v1/plan", "/page/plan"):
            assert client.post(path, files=upload(photo()), headers=given).status_code == status
        answer = client.get("/v1/methods", headers=given)
        assert answer.status_code == status
        assert answer.is_success or answer.headers["content-type"] == "application/problem+json"

    def test_they_may_link_to_the_pages_and_to_nothing_else(self, client: Any) -> None:
        link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        for path in files.PAGES:
            assert client.get(path, headers=link).status_code == 200
            assert client.get(path, headers={**link, "sec-fetch-dest": "iframe"}).status_code == 403
            assert client.get(path, headers={**link, "sec-fetch-mode": "no-cors"}).status_code == 403
            assert client.get(path, headers={**link, "host": "evil.example"}).status_code == 421
        for path in ("/page/offers", "/page/budget", "/v1/methods", "/page/page.mjs"):
            assert client.get(path, headers=link).status_code == 403


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


def test_there_is_no_budget_without_a_ledger(client: Any) -> None:
    assert client.get("/page/budget?subject=album").json() is None
