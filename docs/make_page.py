"""Pictures of the service's page for the documentation: a public photograph in Chromium.

    python docs/make_page.py

Needs the extra `browser` and Debian's Chromium, so the pictures are in the repository: docs/page-*.png.
Each run draws faces anew.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from skimage import data

DOCS = Path(__file__).parent
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
WAIT = 120_000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run the service on a free port, with a budget for an album; yield its address."""
    program, ledger = [sys.executable, "-m", "dpveil"], f"sqlite:///{folder / 'budget.db'}"
    limit = [*program, "ledger", "limit", "album-7", "--epsilon", "6", "--ledger", ledger]
    subprocess.run(limit, check=True, capture_output=True)  # noqa: S603
    command = [*program, "serve", "--port", "0", "--workers", "1", "--ledger", ledger]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        lines: Iterable[str] = process.stderr or ()
        yield next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
    finally:
        process.terminate()
        process.wait()


def photo(folder: Path) -> str:
    """Write two faces of one public photograph; return the name of the file."""
    one = data.astronaut()[:264, 92:356]
    name = folder / "group.png"
    Image.fromarray(np.concatenate([one, one[:, ::-1]], axis=1)).resize((1056, 528)).save(name)
    return str(name)


def planned(page: Any) -> None:
    page.wait_for_selector("#promise[aria-busy=false] .total", timeout=WAIT)
    page.wait_for_selector("#release:enabled", timeout=WAIT)


def change(page: Any, selector: str, value: str | None = None) -> None:
    """Choose a value, or press a button, and wait for the plan that follows."""
    with page.expect_response(lambda answer: answer.url.endswith("/page/plan"), timeout=WAIT):
        if value is None:
            page.click(selector)
        else:
            page.select_option(selector, value)
    planned(page)


def add_box(page: Any) -> None:
    page.focus("#draw")
    page.keyboard.press("Enter")
    for key in ("ArrowDown",) * 8 + ("Shift+ArrowLeft",) * 5 + ("ArrowRight",) * 2:
        page.keyboard.press(key)
    page.evaluate("document.activeElement.blur()")


def shot(page: Any, name: str) -> None:
    page.mouse.move(0, 0)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(256).save(DOCS / f"page-{name}.png", optimize=True)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as address,
        sync_playwright() as started,
    ):
        file = photo(Path(folder))
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        for name, scheme, size in (
            ("light", "light", (1280, 860)),
            ("dark", "dark", (1280, 860)),
            ("phone", "light", (390, 844)),
        ):
            window = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=window, color_scheme=scheme)
            page.goto(address)
            page.wait_for_selector("input[name=way]", timeout=WAIT)
            page.set_input_files("#files", file)
            planned(page)
            if name != "dark":
                add_box(page)
                page.wait_for_selector("#regions li:has-text('a grey box')", timeout=WAIT)
                planned(page)
                change(page, ".spot[data-key=face-1]")
            if name == "dark":
                page.click("#keep summary")
                change(page, "#keep-gender", "1")
                page.click("#keep summary")
                page.click("#release")
                page.wait_for_selector("#result:not([hidden]) .pair img", timeout=WAIT)
                page.locator("#result").scroll_into_view_if_needed()
                page.evaluate("document.getElementById('result').scrollIntoView()")
            elif name == "phone":
                page.evaluate("document.getElementById('look').scrollIntoView()")
            page.wait_for_timeout(500)
            shot(page, name)
        browser.close()


if __name__ == "__main__":
    main()
