"""Pages, tables and pictures that the site builder generates from the code, so that none can go stale."""

from __future__ import annotations

import ast
import csv
import inspect
import json
import math
import re
import sys
import textwrap
from functools import partial
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import numpy as np
import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "dpveil-research" / "docs"))

import make_architecture
import make_evaluate
import make_faces
import make_mechanism_pictures
import make_pictures
import make_start
import reproduced

import dpveil
from dpveil import errors
from dpveil.accounting.meaning import HARM, STRENGTHS
from dpveil.cli import app, exits
from dpveil.cli.options import method_options
from dpveil.core.registry import METHODS

ROOT = Path(__file__).parent.parent
FOREIGN = re.compile(
    r"<(?:script|img|iframe|link(?=[^>]*stylesheet))[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
)

BACK = "[‹ All methods](index.md){ .back }\n\n"
"""The link above each page that only the table of methods lists."""
LISTED: set[str] = set()
"""Pages that only a table lists."""
WIDEST = 9  # a table of a benchmark with more columns than that and than rows is transposed

MOST = 12  # columns beside the first one that fit at 1100 pixels; a wider table goes on in another one below

EXIT_CODES = """
## Exit codes

| code | meaning | when |
|---|---|---|
CODES

Of several photos, 4 stands for a run in which every photo failed for such a reason; where one was released or
skipped, it is 1.

With `--json`, stdout holds exactly one JSON document. Progress and messages go to stderr. What is left after
[interruptions, crashes and full disks](../limits.md#interruptions-crashes-and-several-runs) is whole.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    drawn = make_pictures.pictures() | make_mechanism_pictures.pictures()
    for name, content in drawn.items():
        files.append(File.generated(config, f"pictures/{name}", content=content))
    for name, content in reproduced.plots().items():
        files.append(File.generated(config, f"reproduction/{name}", content=content))
    files.append(File.generated(config, "favicon.png", content=make_start.favicon()))
    files.append(File.generated(config, "reference/cli.md", content=command_line()))
    for path in ROOT.glob("packages/*/docs/*.md"):  # their links are those of a code host
        text = path.read_text(encoding="utf-8").replace("](../../../docs/", "](").replace("](../../../", "](")
        files.append(File.generated(config, path.name, content=text))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "reference/changelog.md", content=changes))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Put pages that only a table lists next to that table, so that their part of the sidebar is shown."""
    for page in filter(None, (file.page for file in files.documentation_pages())):
        index = files.get_file_from_path(f"{Path(page.file.src_uri).parent.as_posix()}/index.md")
        if page.parent is None and index is not None and index.page is not None:
            page.parent = index.page.parent
            LISTED.add(page.file.src_uri)
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    for name, make in PARTS.items():
        mark = "{{ " + name + " }}"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return (BACK if page.file.src_uri in LISTED else "") + markdown


@event_priority(-100)
def on_post_build(config: MkDocsConfig) -> None:
    """Write the search index as a script too, as a page opened from a folder may not load JSON."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    foreign = FOREIGN.search(output)
    if foreign:
        raise PluginError(f"{page.file.src_path} loads something from elsewhere: {foreign[0]}")
    return output


DETAILS = {
    exits.DONE: "",
    exits.INCOMPLETE: (
        "Some or all photos were not released, because their regions do not fit or are not found, or because"
        " something else lies at their output; `verify` found a file without a certificate, or a"
        " release that is missing, inconsistent, weaker than asked for or not signed by a trusted key;"
        " `audit` failed; `evaluate` found a broken guarantee, or a run that does not fit together; `train`"
        " or `synthesize` left images out; `card` found a picture that is no publishable release; `install`"
        " installed nothing"
    ),
    exits.USAGE: "An option is missing, unknown or out of range; nothing was read",
    exits.BUDGET: (
        "Nothing was drawn for a photo, or a set of `synthesize`, that would cost more than a limit of its"
        " subject has left, for a photo that was released with other regions before, or for one that would"
        " promise less than `--at-least`; nor for any photo of a run whose photos cost more together than is"
        " left. `card` found releases that have no total, and wrote nothing"
    ),
    exits.IMPOSSIBLE: (
        "No photo, table or model is one that dpveil reads, or no output can be written, or another run"
        " that a ledger pays for fills the same folder, or the ledger is missing, damaged, busy or replaced,"
        " or `serve` cannot listen or keep results; also where the one picture, plot or model that a command"
        " writes exists, without `--force`"
    ),
    exits.INTERRUPTED: "By Ctrl-C or `SIGTERM`; nothing half written is left",
}
"""When commands end with each exit code."""


def command_line() -> str:
    """Return the reference of the command line, generated from the commands."""
    root = typer.main.get_command(app)
    lines = ["# Command line", "", _help((root.help or "").partition("Exit codes:")[0]), ""]
    for name, command in sorted(root.commands.items()):  # type: ignore[attr-defined]
        lines += _command(name, command.target_command)
        for part, inner in getattr(command.target_command, "commands", {}).items():
            lines += _command(f"{name} {part}", inner)
    codes = "\n".join(f"| {code} | {text} | {DETAILS[code]} |" for code, text in exits.MEANING.items())
    return "\n".join([*lines, *_method_options()]) + EXIT_CODES.replace("CODES", codes)


def _method_options() -> list[str]:
    """Return the options of every method, as `--method NAME --help` shows them beside the command's own."""
    lines = ["## Options of methods", ""]
    for name in METHODS:
        lines += [f"### {name}", "", "| option | |", "|---|---|"]
        lines += [f"| `{_name(option)}` | {_cell(option)} |" for option in method_options(name)]
        lines.append("")
    return lines


def _command(name: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(
        ["dpveil", name, *(_shown(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])]
    )
    lines = [f"## {name}", "", "```text", usage, "```", "", _help(command.help or ""), ""]
    if options:
        lines += ["| option | |", "|---|---|"]
        lines += [f"| `{_name(option)}` | {_cell(option)} |" for option in options if not option.hidden]
        lines.append("")
    return lines


def _shown(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    word += "..." if argument.nargs == -1 else ""
    return word if argument.required else f"[{word}]"


def _help(text: str) -> str:
    """Return the help of a command as Markdown; indented lines become a code block."""
    out: list[str] = []
    for paragraph in inspect.cleandoc(text.replace("\b", "")).split("\n\n"):
        words, _, indented = paragraph.strip("\n").partition("\n  ")
        out.append(words)
        if indented:
            out.append("```text\n" + textwrap.dedent("  " + indented) + "\n```")
    return "\n\n".join(out)


def _name(option: Any) -> str:
    return " ".join([", ".join(option.opts), *([option.metavar] if option.metavar else [])])


def _cell(option: Any) -> str:
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    default = option.default
    if default not in (None, False, (), []) and not callable(default):
        text += f" Default: `{default}`."
    return text


def error_tree() -> str:
    words = inspect.getdoc(errors) or ""
    tree = [line for line in words.splitlines() if line.startswith("    ")]
    return "```text\n" + inspect.cleandoc("\n".join(tree)) + "\n```"


def certificate_example() -> str:
    photo = dpveil.Photo(np.full((64, 48, 3), 128, np.uint8))
    release = dpveil.obfuscate(photo, "dp-pix", epsilon=1, block=16, neighbourhood=64, regions="8,8,32,32")
    return f"```json\n{release.certificate.to_text()}```"


def certificate_schema() -> str:
    text = resources("dpveil.core").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    return f"```json\n{json.dumps(json.loads(text), indent=2, ensure_ascii=False)}\n```"


def strengths() -> str:
    """Return the thresholds of strong, moderate and weak as a table."""
    rows = ["| word | right one of two, at most | δ at most |", "|---|---|---|"]
    rows += [
        f"| {name} | {100 * float(most):g} % | {float(HARM[name]):g} |" for name, most in STRENGTHS.items()
    ]
    return "\n".join(rows)


def benchmarks() -> str:
    """Return every recorded benchmark as a table, with the machine that it ran on."""
    records = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    tables = [_benchmark(path) for path in records if not path.stem.endswith("-quick")]
    return "\n\n".join(tables) if tables else "*No figures are recorded: run `make bench`.*"


def _benchmark(path: Path) -> str:
    record = json.loads(path.read_text(encoding="utf-8"))
    columns = list(dict.fromkeys(name for row in record["rows"] for name in row))
    source = ROOT / "benchmarks" / f"{path.stem}.py"
    told = _docstring(source) if source.exists() else record.get("about", "")
    words = re.sub(r" \(issue \d+\)", "", told).replace("|", "\\|")
    machine = [f"{name} {value}" if name != "machine" else value for name, value in record["machine"].items()]
    lines = [columns, *([_figure(row.get(name, "")) for name in columns] for row in record["rows"])]
    if len(columns) > max(WIDEST, len(record["rows"])):
        lines = [list(line) for line in zip(*lines, strict=True)]
    tables = ["\n".join(f"| {' | '.join(line)} |" for line in part) for part in _folded(lines)]
    notes = [f"*{note}*" for note in record.get("notes", ())]
    if "program" in record:
        notes.append(f"*Made by {record['program']}.*")
    parts = [f"## {path.stem.replace('_', ' ')}", words, *tables, *notes, f"*{', '.join(machine)}.*"]
    return "\n\n".join(part for part in parts if part)


def _folded(lines: list[list[str]]) -> list[list[list[str]]]:
    """Return a table as one of `MOST` columns at most, or as several, each with the first column again."""
    others = max(1, len(lines[0]) - 1)
    each = math.ceil(others / math.ceil(others / MOST))
    parts = [[[line[0], *line[at : at + each]] for line in lines] for at in range(1, others + 1, each)]
    return [[part[0], ["---"] * len(part[0]), *part[1:]] for part in parts]


def _docstring(source: Path) -> str:
    return ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""


def _figure(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    if isinstance(value, list):
        middle, *ends = map(str, value)
        return f"{middle} [{', '.join(ends)}]"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(value)
    return str(value).replace("|", "\\|")


def mutants(part: str) -> str:
    """Return a part of `mutants.csv` as a table; methods whose mutants are rejected alike share a row."""
    with (Path(__file__).parent / "mutants.csv").open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if row.pop("part") == part]
    methods: dict[tuple[str, ...], list[str]] = {}
    for row in found:
        methods.setdefault((row["mutant"], row["what is wrong"], row["rejected by"]), []).append(
            f"`{row['method']}`"
        )
    rows = [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in methods.items()]
    return "\n".join(["| of | mutant | what is wrong | rejected by |", "|---|---|---|---|", *rows])


MUTANTS = ("pixel", "range", "codes", "gallery", "networks", "steps", "tables", "sets")
PARTS = {
    **{f"mutants_{part}": partial(mutants, part) for part in MUTANTS},
    "strengths": strengths,
    "benchmarks": benchmarks,
    "error_tree": error_tree,
    "certificate_example": certificate_example,
    "certificate_schema": certificate_schema,
    "attributes": make_faces.attribute_results,
    "gallery": make_faces.gallery_results,
    "attacks": make_evaluate.attacks,
    "att": make_evaluate.att,
    "attack_strength": make_evaluate.strength,
    "layouts": make_evaluate.layouts,
    "measures": make_evaluate.measures,
    "drawn_sets": make_evaluate.drawn,
    **make_architecture.PARTS,
    **reproduced.PARTS,
}
