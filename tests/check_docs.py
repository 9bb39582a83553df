"""The code blocks of README and docs are run, page by page, in a folder with a made photo.

`python` blocks share one namespace a page, and a `text` block right after one is its output. In `console`
blocks, lines after `$` are commands: those of dpveil are run, in this process, and have to end with 0 or with
the status that a comment says (`# exit status 2`); lines that follow are their output, in which `...` stands
for anything. `tests/e2e` runs commands in processes of their own.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from skimage import data

from dpveil import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/docs/*.md")])
OF_PACKAGES = tuple(path.name for path in ROOT.glob("packages/*/docs/*.md"))
"""Pages that lie in a package of the repository, and in the built documentation beside the others."""
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
STATUS = re.compile(r"#\s*exit status (\d+)\s*$")
NOT_RUN = {"make", ".ci/run", "git"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line it begins on, and the output that follows it."""

    language: str
    text: str
    line: int
    output: str | None = None


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page; a `text` block is joined to the `python` block right before it."""
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        language, body = match[2], match[3]
        line = text[: match.start()].count("\n") + 1
        if (
            language == "text"
            and found
            and found[-1].language == "python"
            and not text[end : match.start()].strip()
        ):
            found[-1] = Block("python", found[-1].text, found[-1].line, body)
        else:
            found.append(Block(language, body, line))
        end = match.end()
    return found


def commands(text: str) -> Iterator[tuple[str, int, str | None]]:
    """Yield each command of a console block with its exit status and the output shown, if any."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        status = STATUS.search(command)
        yield (
            STATUS.sub("", command).strip(),
            int(status[1]) if status else 0,
            output if output.strip() else None,
        )


def agrees(shown: str, got: str) -> bool:
    """Whether the output is what the page shows, `...` standing for anything."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown, got, options)


def expand(word: str) -> list[str]:
    return sorted(map(str, Path().glob(word))) if set(word) & set("*?") else []


def run(command: str) -> tuple[int, str, str]:
    """Run a dpveil command in the current folder, its file patterns expanded as a shell would.

    Returns its exit code and what it wrote to stdout and stderr.
    """
    words = [name for word in shlex.split(command)[1:] for name in (expand(word) or [word])]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run(words)
    return code, out.getvalue(), err.getvalue()


def make_photos(folder: Path) -> None:
    """Put a portrait, a mask, a small tree of photos and a made-up survey into `folder`."""
    portrait = Image.fromarray(data.astronaut())
    portrait.save(folder / "portrait.jpg", quality=90)
    mask = Image.new("L", portrait.size, 0)
    mask.paste(255, (176, 60, 264, 180))
    mask.save(folder / "mask.png")
    (folder / "photos" / "album").mkdir(parents=True)
    portrait.resize((64, 64)).save(folder / "photos" / "one.jpg")
    portrait.resize((48, 33)).save(folder / "photos" / "album" / "two.png")
    rows = [
        f"{18 + 7 * k % 67},{'' if k == 9 else 900 + 613 * k % 5200},{['no', 'yes'][k % 3 > 0]}"
        for k in range(60)
    ]
    (folder / "survey.csv").write_text("\n".join(["age,income,answer", *rows, ""]), encoding="utf-8")


def run_python(block: Block, page: Path, names: dict[str, object]) -> None:
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, str(page), "exec")  # real line numbers in a traceback
    with contextlib.redirect_stdout(out):
        exec(code, names)  # noqa: S102
    if block.output is not None:
        assert agrees(block.output, out.getvalue()), f"{page.name}:{block.line} printed\n{out.getvalue()}"


def run_console(block: Block, page: Path) -> None:
    for command, status, output in commands(block.text):
        where = f"{page.name}:{block.line}: {command}"
        if command.split()[0] in NOT_RUN:
            continue
        assert command.split()[0] == "dpveil", f"{where}: no such command in a page that is tested"
        code, out, err = run(command)
        assert code == status, f"{where}: exit {code}\n{out}{err}"
        if output is not None:
            assert agrees(output, out), f"{where}\n{out}"


RUNNERS = {
    "python": run_python,
    "console": lambda block, page, names: run_console(block, page),
    "json": lambda block, page, names: json.loads(block.text),
    "text": lambda block, page, names: None,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_photos(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    monkeypatch.setitem(sys.modules, "page", type(sys)("page"))  # dataclasses look their module up
    for block in blocks(page.read_text(encoding="utf-8")):
        assert block.language in RUNNERS, (
            f"{page.name}:{block.line}: a block in {block.language!r} is not tested"
        )
        RUNNERS[block.language](block, page, names)
    assert Path.cwd() == tmp_path


def test_readme_begins_with_the_name_a_sentence_and_a_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = re.match(r"# dpveil\n\n[^!#]+\.\n\n!\[[^\]]+\]\(([^)]+\.png)\)\n", text)
    assert picture
    assert (ROOT / picture[1]).stat().st_size < 200_000


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_pages_that_a_code_host_shows_lead_to_pages_that_are_whole_there(name: str) -> None:
    """A code host shows `{{ ... }}` as it is: only the built documentation has the table in its place."""
    text = (ROOT / name).read_text(encoding="utf-8")
    linked = {ROOT / target for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+\.md)", text)}
    assert len(linked) > 1
    marked = {page.name for page in linked if "{{" in page.read_text(encoding="utf-8")}
    assert marked == set(), f"{name} links to pages with placeholders"


def test_a_wrong_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path("wrong.md")
    with pytest.raises(AssertionError, match="printed"):
        run_python(blocks("```python\nprint(1)\n```\n\n```text\n2\n```\n")[0], page, {})
    with pytest.raises(AssertionError, match="exit 2"):
        run_console(blocks("```console\n$ dpveil no-such-command\n```\n")[0], page)
    with pytest.raises(AssertionError, match="no such command"):
        run_console(blocks("```console\n$ rm -r photos\n```\n")[0], page)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            generated = target.endswith((".png", ".svg", ".csv", "cli.md", "changelog.md", *OF_PACKAGES))
            assert generated or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_tables_of_benchmarks_fit_on_a_screen_and_lose_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    hooks = importlib.import_module("hooks")
    wide = [["name", *map(str, range(30))], ["row", *map(str, range(100, 130))]]
    parts = hooks._folded(wide)
    assert [len(part[0]) for part in parts] == [11, 11, 11]
    assert [cell for part in parts for cell in part[2][1:]] == wide[1][1:]
    assert {part[2][0] for part in parts} == {"row"}
    heads = [line for line in hooks.benchmarks().splitlines() if line.startswith("| ")]
    assert heads
    assert max(line.count(" | ") for line in heads) <= hooks.MOST


def test_the_search_index_can_be_loaded_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    hooks = importlib.import_module("hooks")
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text('{"docs": ["ε"]}', encoding="utf-8")
    hooks.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
    script = (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert script == 'var __index = {"docs": ["ε"]}'
