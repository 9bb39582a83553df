"""The page in Chromium, by real clicks and keys: from a dropped photo to downloads that verify."""

from __future__ import annotations

import base64
import http.server
import io
import json
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from clips_made import frames_of, make_clip
from PIL import Image
from service_client import service
from skimage import data

import dpveil
from dpveil.ledger import Ledger, Limit
from dpveil.service.keys import Keys

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the extra browser")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (on Debian: chromium)")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
WAIT = 60_000
"""Milliseconds after which a step counts as hanging."""
DROP = """([names, texts]) => {
  const moved = new DataTransfer();
  names.forEach((name, at) => {
    const bytes = Uint8Array.from(atob(texts[at]), (letter) => letter.charCodeAt(0));
    moved.items.add(new File([bytes], name, { type: "image/png" }));
  });
  const event = (kind) => new DragEvent(kind, { dataTransfer: moved, bubbles: true, cancelable: true });
  const place = document.getElementById("drop");
  place.dispatchEvent(event("dragover"));
  place.dispatchEvent(event("drop"));
}"""


def png(image: np.ndarray, mark: int = 0) -> bytes:
    """Return a file; with another `mark` it is another photo, of which other regions may be released."""
    file, marked = io.BytesIO(), image.copy()
    marked[0, 0] = mark
    Image.fromarray(marked).save(file, "PNG")
    return file.getvalue()


ONE = data.astronaut()[:264, 92:356]
BOTH = np.concatenate([ONE, ONE[:, ::-1]], axis=1)
TWO = png(BOTH)
FACELESS = png(np.full((120, 160, 3), 90, np.uint8))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("ledger")
    with Ledger(f"sqlite:///{folder}/budget.db", create=True) as ledger:
        for subject, epsilon in (("album", 4), ("few", 3), ("retry", 9)):
            ledger.set_limit(subject, Limit(kind="pure", epsilon=epsilon))
        yield ledger


@pytest.fixture(scope="module")
def address(ledger: Any) -> Iterator[str]:
    with service(ledger=ledger) as (_, client):
        yield str(client.base_url)


@contextmanager
def tab(browser: Any, address: str, **more: Any) -> Iterator[Any]:
    """Open the page in a context of its own; nothing may be logged as an error or asked of another place."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **more})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    outside: list[str] = []
    noise: list[str] = []
    page.on("request", lambda asked: outside.append(asked.url))
    page.on("console", lambda line: noise.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (event) => console.error(event.blockedURI))"
    )
    page.goto(f"{address}/")
    try:
        yield page
        places = (address, f"blob:{address}")
        assert [url for url in outside if not url.startswith(places)] == []
        assert [line for line in noise if not line.startswith("Failed to load resource")] == []
        assert context.cookies() == []
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    finally:
        context.close()


def drop(page: Any, **photos: bytes) -> None:
    page.wait_for_selector("input[name=way]")
    names = [name.replace("_", ".") for name in photos]
    page.evaluate(DROP, [names, [base64.b64encode(photo).decode() for photo in photos.values()]])


def planned(page: Any) -> None:
    """Wait until the plan that is shown is the one of all choices."""
    page.wait_for_selector("#promise[aria-busy=false] .total")
    page.wait_for_selector("#release:enabled")


def change(page: Any, does: Callable[[], None]) -> None:
    """Change something, and wait for the plan that follows."""
    with page.expect_response(lambda answer: answer.url.endswith("/page/plan") and answer.ok):
        does()
    planned(page)


def saved(page: Any, words: str, folder: Path) -> Path:
    with page.expect_download() as waited:
        page.get_by_role("link", name=words).click()
    path = folder / waited.value.suggested_filename
    waited.value.save_as(path)
    return path


def accessible(page: Any) -> None:
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def fits(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def shows(page: Any, where: str, text: Any) -> None:
    """Wait until an element has this text."""
    playwright.expect(page.locator(where)).to_have_text(text, timeout=WAIT)


def is_red(page: Any) -> bool:
    """Whether what is said beside the button looks like a failure."""
    return "problem" in str(page.get_attribute("#why", "class"))


def offered(page: Any) -> list[str]:
    """Return the subjects that are offered to pay."""
    return [one.get_attribute("value") for one in page.query_selector_all("#subjects option")]


def boxes(page: Any) -> list[str]:
    return [button.get_attribute("aria-label") for button in page.query_selector_all(".spot")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_from_a_dropped_photo_to_downloads_that_verify(
    browser: Any, address: str, tmp_path: Path, scheme: Any
) -> None:
    with tab(browser, address, color_scheme=scheme) as page:
        accessible(page)
        page.fill("#subject", "album")
        drop(page, group_png=TWO)
        planned(page)
        assert page.text_content("#promise .total") == "strong nothing is kept (ε = 0)"
        change(page, page.get_by_role("button", name="Face 1 is replaced by a synthetic face").click)
        assert boxes(page)[0].startswith("Face 1 is kept") or boxes(page)[1].startswith("Face 1 is kept")
        accessible(page)
        page.click("#release")
        page.wait_for_selector("#result:not([hidden])")
        page.get_by_label("How much of the original is shown").press("End")
        clip = "document.querySelectorAll('.pair img')[1].style.clipPath"
        assert page.evaluate(clip) == "inset(0px 0% 0px 0px)"
        accessible(page)
        image, certificate = (
            saved(page, f"Download {what}", tmp_path) for what in ("picture", "certificate")
        )
    assert (image.name, certificate.name) == ("group.private.png", "group.private.png.certificate.json")
    found = dpveil.verify(image)
    assert found.status == "consistent"
    assert found.publishable
    stated = json.loads(certificate.read_text(encoding="utf-8"))
    assert stated["request"] == ["faces margin=0 except=1"]
    before, after = (np.asarray(Image.open(file)) for file in (io.BytesIO(TWO), image))
    assert (before[:, :240] == after[:, :240]).all()
    assert (before[60:160, 360:440] != after[60:160, 360:440]).any(axis=2).mean() > 0.8


def test_files_of_every_kind_are_released_reviewed_and_downloaded_by_their_names(
    browser: Any, tmp_path: Path
) -> None:
    """Where nothing pays, documents and clips, too; and a JPEG stays one."""
    jpeg, pdf = io.BytesIO(), io.BytesIO()
    Image.open(io.BytesIO(TWO)).convert("RGB").save(jpeg, "JPEG")
    Image.open(io.BytesIO(TWO)).convert("RGB").save(pdf, "PDF")
    clip = make_clip(tmp_path / "clip.mp4", 6, still=BOTH).read_bytes()
    with service() as (_, client), tab(browser, str(client.base_url).rstrip("/")) as page:
        drop(page, two_jpg=jpeg.getvalue(), page_pdf=pdf.getvalue(), clip_mp4=clip)
        page.check("input[value=fill]")
        page.check("input[value=codes]")  # none is there, and what else is found is replaced alone
        page.get_by_role("button", name="Release all 3").click()
        page.wait_for_selector("#zip:not([hidden])[href]")
        assert "SHA-256" in page.inner_text("blockquote")
        assert page.locator(".review canvas").count() == 4, "two faces, before and after"
        page.check("#reviewed")
        page.wait_for_selector(".thumb.reviewed")
        accessible(page)
        archive = zipfile.ZipFile(saved(page, "Download all", tmp_path))
        archive.extractall(tmp_path)
    names = sorted(name for name in archive.namelist() if not name.endswith(".json"))
    assert names == ["clip.private.mp4", "page.private.pdf", "two.private.jpg"]
    assert {found.status for name in names for found in dpveil.verify_each(tmp_path / name)} == {"consistent"}
    stated = json.loads((tmp_path / "two.private.jpg.certificate.json").read_text(encoding="utf-8"))
    assert [text.partition(" ")[0] for text in stated["request"]] == ["faces", "codes"]


def test_what_is_kept_is_paid_by_the_subject_until_nothing_is_left(
    browser: Any, address: str, ledger: Any
) -> None:
    """A release that is too dear is not offered, with the reason and what is left; one that is free is."""
    with tab(browser, address) as page:
        shows(page, "#budget", re.compile("These can pay: album, few, retry"))
        assert offered(page) == ["album", "few", "retry"]
        assert page.input_value("#subject") == ""
        drop(page, one_png=png(ONE, 3))
        shows(page, "#why", "Say who pays first.")
        assert not is_red(page), "it is asked for, and nothing is wrong"
        assert page.is_disabled("#release")
        page.fill("#subject", "album")
        page.press("#subject", "Tab")
        shows(page, "#budget", "album has ε 4 of 4 left.")
        planned(page)
        page.check("input[value=heads]")
        page.click("#keep summary")
        change(page, lambda: page.select_option("#keep-tone", "2"))
        assert page.text_content("#promise .total") == "moderate ε = 2"
        assert page.text_content("#now") == "moderate ε = 2"
        assert "88.08 %" in page.inner_text("#promise table")
        for left in (2, 0):
            page.click("#release")
            page.wait_for_selector("#result:not([hidden])")
            shows(page, "#status", f"Released. album has ε {left} of 4 left.")
        shows(page, "#why", "Another release of it costs ε 2, and album has 0 left.")
        assert not is_red(page), "it was a success"
        shows(page, "#release", "Release again, at the same cost")
        assert page.is_disabled("#release")
        accessible(page)
        change(page, lambda: page.select_option("#keep-tone", "=dark"))
        assert page.text_content("#promise .total") == "strong nothing is kept (ε = 0)"
        assert "chosen by the user and not covered" in str(page.text_content("#promise"))
        page.fill("#subject", "nobody")
        page.press("#subject", "Tab")
        shows(page, "#why", "Nothing can be paid for nobody, which has no limit.")
        assert is_red(page)
        assert page.is_disabled("#release")
    assert ledger.show("album").to_json()["spent"]["epsilon"] == 4


def test_an_answer_that_got_lost_is_fetched_and_not_paid_again(
    browser: Any, address: str, ledger: Any
) -> None:
    with tab(browser, address) as page:
        page.fill("#subject", "retry")
        drop(page, one_png=png(ONE, 5))
        planned(page)
        page.check("input[value=heads]")
        page.click("#keep summary")
        change(page, lambda: page.select_option("#keep-tone", "2"))
        page.route("**/v1/releases", lose, times=1)
        page.click("#release")
        shows(page, "#problem", re.compile("the service does not answer"))
        assert ledger.show("retry").to_json()["spent"]["epsilon"] == 2
        page.click("#release")
        page.wait_for_selector("#result:not([hidden])")
    assert ledger.show("retry").to_json()["spent"]["epsilon"] == 2


def lose(route: Any) -> None:
    """Let the service answer, and lose the answer."""
    assert route.fetch().status == 201
    route.abort()


def test_boxes_by_mouse_and_keyboard(browser: Any, address: str) -> None:
    with tab(browser, address) as page:
        page.fill("#subject", "album")
        drop(page, wall_png=FACELESS)
        page.wait_for_selector("#promise .problem")
        assert page.inner_text("#promise").startswith("No face was found in this photo. Add a box")
        assert page.is_disabled("#release")
        page.check("input[value=fill]")
        page.wait_for_selector("#promise .problem")
        assert page.is_hidden("#drag-help")
        page.click("#draw")
        assert page.is_visible("#drag-help")
        seen = page.locator("#stage").bounding_box()
        times = seen["width"] / 160
        change(page, lambda: drag(page, seen, times))
        assert rounded(page) == [[20, 30, 60, 50]]
        assert page.is_hidden("#drag-help")
        assert "only your boxes are replaced" in page.inner_text("#promise")
        page.focus("#draw")
        change(page, lambda: page.keyboard.press("Enter"))
        assert rounded(page) == [[20, 30, 60, 50], [60, 45, 40, 30]]
        assert page.evaluate("document.activeElement.dataset.key") == "box-1"
        change(
            page, lambda: [page.keyboard.press(key) for key in ("ArrowLeft", "ArrowDown", "Shift+ArrowRight")]
        )
        assert rounded(page)[1] == [57, 48, 43, 30]
        assert page.evaluate("document.activeElement.dataset.key") == "box-1"
        change(page, lambda: page.keyboard.press("Delete"))
        assert rounded(page) == [[20, 30, 60, 50]]
        accessible(page)
        page.get_by_role("button", name="Remove Object 1").click()
        page.wait_for_selector("#promise .problem")
        assert rounded(page) == []


def drag(page: Any, seen: Any, times: float) -> None:
    page.mouse.move(seen["x"] + 20 * times, seen["y"] + 30 * times)
    page.mouse.down()
    page.mouse.move(seen["x"] + 50 * times, seen["y"] + 50 * times)
    page.mouse.move(seen["x"] + 80 * times, seen["y"] + 80 * times)
    page.mouse.up()


def rounded(page: Any) -> list[list[int]]:
    """Return the boxes by hand, in pixels of the photo, as the button over each lies."""
    script = """(all) => all.map(({ style }) => [style.left, style.top, style.width, style.height])"""
    found = page.eval_on_selector_all(".spot.box", script)
    rows = [
        [
            round(float(text.rstrip("%")) * size / 100)
            for text, size in zip(row, (160, 120, 160, 120), strict=True)
        ]
        for row in found
    ]
    return sorted(rows)


def test_many_photos_in_one_archive_on_a_phone(browser: Any, address: str, tmp_path: Path) -> None:
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
    with tab(browser, address, **phone) as page:
        fits(page)
        page.fill("#subject", "album")
        hostile = "<img src=x onerror=alert(1)>_png"
        drop(page, **{"a_png": png(ONE, 7), "A_PNG": png(BOTH, 7), hostile: png(ONE[:, ::-1], 7)})
        page.wait_for_selector(".thumb.ready >> nth=2")
        fits(page)
        page.get_by_role("button", name="<img src=x onerror=alert(1)>.png").tap()
        shows(page, "#look-title", "<img src=x onerror=alert(1)>.png")
        accessible(page)
        page.get_by_role("button", name="Release all 3").tap()
        page.wait_for_selector("#zip[href]:not([hidden])")
        shows(page, "#zip", "Download all 3 (zip)")
        fits(page)
        accessible(page)
        archive = saved(page, "Download all 3 (zip)", tmp_path)
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        opened.extractall(tmp_path / "out")
    images = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert images == ["A-2.private.png", "_img src=x onerror=alert(1)_.private.png", "a.private.png"]
    assert all(dpveil.verify(tmp_path / "out" / name).publishable for name in images)


def test_a_key_is_asked_for_and_forgotten(browser: Any, ledger: Any, tmp_path: Path) -> None:
    """A key for one subject names who pays; one that is wrong is told in words for people."""
    keys, key = Keys().new("shop", ["album"], 1000)
    keys, more = keys.new("studio", ["few", "retry"], 1000)
    keys.write(tmp_path / "keys.json")
    with (
        service(ledger=ledger, keys=tmp_path / "keys.json") as (_, client),
        tab(browser, str(client.base_url).rstrip("/")) as page,
    ):
        shows(page, "#status", "Enter an API key first.")
        page.evaluate(DROP, [["early.png"], [base64.b64encode(FACELESS).decode()]])
        shows(page, "#promise", "Enter the API key first.")
        page.click("#remove")
        page.fill("#key", "dpveil_wrong")
        page.press("#key", "Tab")
        shows(page, "#problem", re.compile("^This key is not known here. Was it copied whole?"))
        assert page.get_attribute("#key", "aria-invalid") == "true"
        accessible(page)
        page.fill("#key", key)
        page.press("#key", "Tab")
        drop(page, wall_png=FACELESS)
        shows(page, "#budget", re.compile("^album has ε [0-9] of 4 left"))
        assert page.input_value("#subject") == "album"
        assert page.is_hidden("#problem")
        shows(page, "#promise", re.compile("^No face was found"))
        accessible(page)
        page.reload()
        shows(page, "#status", "Enter an API key first.")
        page.fill("#key", more)
        page.press("#key", "Tab")
        drop(page, one_png=png(ONE, 8))
        shows(page, "#promise .total", "strong nothing is kept (ε = 0)")
        shows(page, "#why", "Say who pays first.")
        page.fill("#subject", "album")
        page.press("#subject", "Tab")
        shows(page, "#why", re.compile("^this key may not spend that subject"))
        page.fill("#subject", "retry")
        page.press("#subject", "Tab")
        page.click("#release")
        shows(page, "#status", re.compile("^Released. retry has ε"))


def test_the_keyboard_alone_from_a_file_to_a_download(browser: Any, address: str, tmp_path: Path) -> None:
    """What is said on the way is said to screen readers, too."""
    (tmp_path / "group.png").write_bytes(png(BOTH, 12))
    with tab(browser, address) as page:
        page.on("filechooser", lambda _: None)  # from now on, and not from when one is opened
        page.wait_for_selector("input[name=way]")
        page.evaluate(LISTEN)
        keys = page.keyboard
        reach(page, "#files")
        with page.expect_file_chooser() as chooser:
            keys.press("Enter")
        chooser.value.set_files(tmp_path / "group.png")
        page.wait_for_selector("#promise[aria-busy=false] .total")
        reach(page, ".spot[data-key=face-1]")
        with page.expect_response(lambda answer: answer.url.endswith("/page/plan") and answer.ok):
            keys.press("Space")
        reach(page, "input[name=way]")
        keys.press("ArrowDown")
        reach(page, "#subject")
        keys.type("album")
        keys.press("Tab")
        planned(page)
        reach(page, "#release")
        keys.press("Enter")
        page.wait_for_selector("#result:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "result"
        shows(page, "#status", re.compile("^Released. album"))
        reach(page, "#released a")
        with page.expect_download() as waited:
            keys.press("Enter")
        assert waited.value.suggested_filename == "group.private.png"
        heard = page.evaluate("window.heard")
    assert {"Releasing…", "Looking for faces…"} <= {*heard}
    assert any(text.startswith("Released. album") for text in heard)
    assert any("ε = 0" in text for text in heard)


LISTEN = """() => {
  window.heard = [];
  const live = document.querySelectorAll("[role=status], [role=alert], [aria-live=polite]");
  for (const one of live) {
    const hear = () => window.heard.push(one.textContent);
    new MutationObserver(hear).observe(one, { childList: true, characterData: true, subtree: true });
  }
}"""
"""Notes every text that a screen reader is told of by itself."""


def reach(page: Any, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_somebody_stays_in_a_clip(browser: Any, tmp_path: Path, scheme: Any) -> None:
    """A clip is looked over with its people; who is ticked stays, and the certificate says so."""
    clip = make_clip(tmp_path / "two.mp4", 12, still=BOTH)
    with (
        service() as (_, client),
        tab(browser, str(client.base_url).rstrip("/"), color_scheme=scheme) as page,
    ):
        drop(page, two_mp4=clip.read_bytes())
        planned(page)
        pictures = page.locator("#people img")
        assert [pictures.nth(n).evaluate("(one) => one.naturalWidth > 20") for n in range(6)] == [True] * 6
        accessible(page)
        page.check("[data-key=stays-2]")
        shows(page, "#promise .part", "for 1 of 2 people; person 2 is shown")
        planned(page)
        assert pictures.count() == 6
        page.set_viewport_size({"width": 390, "height": 800})
        fits(page)
        page.check("[data-key=stays-1]")
        shows(page, "#why", "Nothing would be replaced: untick somebody.")
        page.uncheck("[data-key=stays-1]")
        planned(page)
        accessible(page)
        page.click("#release")
        page.wait_for_selector("#result:not([hidden])")
        assert "Track 2 stays as it is" in page.inner_text("#released .warnings")
        accessible(page)
        release, _ = (saved(page, f"Download {what}", tmp_path) for what in ("clip", "certificate"))
        page.check("input[value=fill]")  # which may number them otherwise: everybody is replaced
        page.wait_for_selector("#promise[aria-busy=false]")
        assert page.locator("#people :checked").count() == 0
    assert dpveil.verify(release).status == "consistent"
    stated = json.loads(Path(f"{release}.certificate.json").read_text(encoding="utf-8"))
    assert [track["visible"] for track in stated["tracks"]] == [False, True]
    before, after = (frames_of(path)[5].astype(int) for path in (clip, release))
    changed = np.abs(before - after).max(axis=2) > 40
    assert changed[60:160, 80:170].mean() > 0.2
    assert changed[:, 264:].mean() < 0.01


def test_what_is_found_beside_faces_is_drawn_and_listed(browser: Any, address: str) -> None:
    code = cv2.QRCodeEncoder.create().encode("https://example.org")
    photo = BOTH.copy()
    photo[4:104, 210:310] = cv2.resize(code, (100, 100), interpolation=cv2.INTER_NEAREST)[..., None]
    with tab(browser, address) as page:
        page.fill("#subject", "album")
        drop(page, code_png=png(photo))
        planned(page)
        change(page, lambda: page.check("input[value=codes]"))
        shows(page, "#regions .found", "Code 1 is replaced by a grey box")
        assert page.locator("#stage path.found").count() == 1
        accessible(page)


def test_a_page_of_another_site_spends_nothing(browser: Any, address: str, ledger: Any) -> None:
    """It posts a form and two requests with a whole upload; whoever looked at the page would pay."""
    before = ledger.show("album").to_json()
    with elsewhere(address) as site:
        context = browser.new_context()
        page = context.new_page()
        seen: list[tuple[str, int]] = []
        context.on(
            "response",
            lambda answer: (
                seen.append((answer.request.method, answer.status))
                if answer.url.startswith(address)
                else None
            ),
        )
        page.goto(site)
        page.wait_for_function("window.tried === 2")
        page.click("#form")
        page.wait_for_url(f"{address}/v1/releases")
        page.wait_for_load_state()
        context.close()
    posts = [status for method, status in seen if method == "POST"]
    assert posts
    assert set(posts) == {403}
    assert ledger.show("album").to_json() == before


@contextmanager
def elsewhere(address: str) -> Iterator[str]:
    """Serve a hostile page at another port."""
    settings = '{"method": "fill", "regions": "whole", "subject": "album"}'
    body = f"""<!doctype html><title>elsewhere</title>
    <form method=post action="{address}/v1/releases" enctype="multipart/form-data">
    <textarea name=settings>{settings}</textarea><textarea name=photo>x</textarea>
    <button id=form>go</button></form>
    <script>window.tried = 0;
    for (const path of ["/v1/releases", "/page/plan"]) {{
      const form = new FormData();
      form.append("settings", '{settings}');
      form.append("photo", new Blob(["x"]));
      fetch("{address}" + path, {{method: "POST", mode: "no-cors", body: form}}).catch(() => 0)
        .finally(() => window.tried += 1);
    }}</script>"""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{site.server_address[1]}/"
    finally:
        site.shutdown()
        site.server_close()
