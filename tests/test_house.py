"""House rules, checked by walking the code: what is undocumented, oversized or forbidden is red."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import typer.main

import dpveil
from dpveil.catalogue import TABLE
from dpveil.cli import app
from dpveil.mechanisms import scalar

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpveil"
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
METHODS = sorted(TABLE.items())
MECHANISMS = sorted(scalar.TABLE.items())
SECTIONS = ("What it does", "What it promises", "Parameters", "What to know")
FUNCTION_LINES = 40
FILE_LINES = 300


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def region_table() -> dict[str, Any]:
    return dict(importlib.import_module("dpveil.regions").TABLE)


def parameters(method: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(method)]


def commands() -> list[tuple[str, Any]]:
    found = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    for name, command in list(found.items()):
        found |= {f"{name} {part}": inner for part, inner in getattr(command, "commands", {}).items()}
    return sorted(found.items())


# Documentation


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_module_says_what_it_is(path: Path) -> None:
    words = ast.get_docstring(TREES[path])
    assert words, f"{name_of(path)} has no docstring"


@pytest.mark.parametrize("name", dpveil.__all__)
def test_public_name_is_documented(name: str) -> None:
    value = getattr(dpveil, name)
    if isinstance(value, str | tuple):
        return
    reference = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert f"\n::: dpveil.{name}\n" in reference, f"docs/reference/api.md lacks dpveil.{name}"
    words = inspect.getdoc(value) or ""
    assert re.match(r"[A-Z`].+?[.:]", words, re.DOTALL), f"dpveil.{name} has no sentence of its own"
    if inspect.isfunction(value):
        shown = f"dpveil.{name}(" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
        assert ">>>" in words or shown, f"dpveil.{name} has no example that is run"


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_method_is_documented(name: str, method: Any) -> None:
    words = inspect.getdoc(method) or ""
    for part in ("Raises", "Source:", ">>>"):
        assert part in words, f"the docstring of {method.__name__} lacks {part!r}"
    for field in parameters(method):
        assert f"`{field}`" in words or field == "epsilon", f"{method.__name__} does not explain {field}"
    assert method.name == name
    assert method.summary
    assert method.source
    assert name.replace("-", "") == method.__name__.lower()


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_method_has_a_page(name: str, method: Any) -> None:
    page = ROOT / "docs" / "methods" / f"{name}.md"
    assert page.exists(), f"docs/methods/{name}.md is missing"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    for section in SECTIONS:
        assert f"\n## {section}\n" in text, f"{page.name} lacks the section {section!r}"
    for field in parameters(method):
        assert f"`{field}`" in text, f"{page.name} does not explain {field}"
        assert f"`--{field.replace('_', '-')}`" in text, f"{page.name} does not name the option of {field}"
    assert f"({name}.md)" in (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "mechanism"), MECHANISMS)
def test_mechanism_is_documented(name: str, mechanism: Any) -> None:
    words = inspect.getdoc(mechanism) or ""
    for part in ("Source:", ">>>"):
        assert part in words, f"the docstring of {mechanism.__name__} lacks {part!r}"
    assert mechanism.name == name
    assert mechanism.summary
    assert mechanism.source
    common = {field.name for field in dataclasses.fields(scalar.ScalarMechanism)}
    for field in set(parameters(mechanism)) - common:
        assert f"`{field}`" in words, f"{mechanism.__name__} does not explain {field}"


@pytest.mark.parametrize(("name", "mechanism"), MECHANISMS)
def test_mechanism_has_a_page(name: str, mechanism: Any) -> None:
    folder = ROOT / "docs" / "mechanisms"
    page = folder / f"{name}.md"
    assert page.exists(), f"docs/mechanisms/{name}.md is missing"
    text, index = (path.read_text(encoding="utf-8") for path in (page, folder / "index.md"))
    assert text.startswith(f"# {name}\n")
    for section in SECTIONS:
        assert f"\n## {section}\n" in text, f"{page.name} lacks the section {section!r}"
    assert f"(../pictures/mechanism-{name}.png)" in text, f"{page.name} shows no picture"
    common = {field.name for field in dataclasses.fields(scalar.ScalarMechanism)}
    for field in parameters(mechanism):
        where, named = (index, "index.md") if field in common else (text, page.name)
        assert f"`{field}`" in where, f"{named} does not explain {field}"
        assert f"`--{field.replace('_', '-')}`" in where, f"{named} does not name the option of {field}"
    assert f"({name}.md)" in index


def test_every_region_is_documented() -> None:
    table = region_table()
    assert table
    for name, finder in table.items():
        assert inspect.getdoc(finder), f"region {name} has no docstring"


@pytest.mark.parametrize(("name", "command"), commands())
def test_command_has_help_and_an_example(name: str, command: Any) -> None:
    assert re.search(rf"dpveil {name}\b", command.help or ""), f"dpveil {name} --help shows no example"
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert parameter.help, f"dpveil {name} {parameter.opts[0]} has no help"


def test_every_method_parameter_is_an_option() -> None:
    options = {text for parameter in dict(commands())["obfuscate"].params for text in parameter.opts}
    for _, method in METHODS:
        for field in parameters(method):
            assert f"--{field.replace('_', '-')}" in options


def test_every_page_is_in_the_navigation_or_in_the_table_of_its_folder() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        index = page.with_name("index.md")
        listed = index.exists() and f"({page.name})" in index.read_text(encoding="utf-8")
        found = f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in nav
        assert found or listed, f"{page.name} is neither in mkdocs.yml nor in the table beside it"


def test_errata_page_and_tests_agree() -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    corrected = page.partition("## Pending")[0]
    listed = set(re.findall(r"^### (E\d+):", corrected, re.MULTILINE))
    shown = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        shown |= {
            match.upper()
            for match in re.findall(r"def test_\w*?_(e\d+)(?=_)", path.read_text(encoding="utf-8"))
        }
    assert "E12" in listed
    assert shown <= listed, f"tests show {shown - listed}, which the errata page does not list"
    for section in re.split(r"^### ", corrected, flags=re.MULTILINE)[1:]:
        references = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", section)
        assert references, f"no check is named for {section.splitlines()[0]}"
        for file, test in references:
            path = ROOT / file
            assert path.exists(), f"{file} does not exist"
            assert f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"


# Shape of the code


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_and_functions_are_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= FILE_LINES, f"{name_of(path)} has {lines} lines"
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = function_lines(node)
            assert length <= FUNCTION_LINES, f"{node.name} in {name_of(path)} has {length} lines"


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function's body without its docstring: a table of options is not code."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def breaches(tree: ast.AST) -> Iterator[str]:
    """Yield what no file of src/ may contain."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno}: assert"
        if isinstance(node, ast.ExceptHandler) and swallows(node):
            yield f"line {node.lineno}: except that hides an error"
        if unsafe_randomness(node):
            yield f"line {node.lineno}: unsafe randomness"  # type: ignore[attr-defined]


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches everything and does not raise again, or has no type at all."""
    if handler.type is None:
        return True
    wide = any(
        name.id in ("Exception", "BaseException")
        for name in ast.walk(handler.type)
        if isinstance(name, ast.Name)
    )
    return wide and all(isinstance(statement, ast.Pass | ast.Continue) for statement in handler.body)


def unsafe_randomness(node: ast.AST) -> bool:
    """Whether a node imports or uses the random modules of Python or NumPy."""
    if isinstance(node, ast.Import):
        return any(alias.name in ("random", "numpy.random") for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        from_numpy = node.module == "numpy" and any(alias.name == "random" for alias in node.names)
        return from_numpy or node.module in ("random", "numpy.random")
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_source_has_nothing_forbidden(path: Path) -> None:
    assert list(breaches(TREES[path])) == []


@pytest.mark.parametrize(
    "text",
    [
        "assert x",
        "try:\n    f()\nexcept:\n    g()",
        "try:\n    f()\nexcept Exception:\n    pass",
        "import random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "y = np.random.default_rng(1)",
    ],
)
def test_forbidden_things_are_noticed(text: str) -> None:
    assert len(list(breaches(ast.parse(text)))) == 1


@pytest.mark.parametrize("path", [path for path in FILES if "audit" not in path.parts], ids=name_of)
def test_sources_are_ones_that_a_reader_can_open(path: Path) -> None:
    """Literature and pages of these docs, never the notes that the project was planned with."""
    internal = re.compile(r"methods §|\barchitecture\b")
    assert not internal.findall(path.read_text(encoding="utf-8"))


# Versions, pins and the schema


def test_versions_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest
    assert newest[1] == version
    assert importlib.metadata.version("dpveil") == version


def test_constraints_pin_everything_and_name_no_machine() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.]*", pin) for pin in pins)
    pinned = {re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [need for extra in project["project"]["optional-dependencies"].values() for need in extra]
    names = {re.split(r"[\[<>=~! ]", need)[0].lower() for need in wanted} - {"dpveil"}
    assert names <= pinned


def test_schema_accepts_a_real_certificate_and_refuses_others() -> None:
    schema = json.loads((SOURCE / "core" / "certificate.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    photo = dpveil.Photo(np.full((40, 30, 3), 90, np.uint8))
    release = dpveil.obfuscate(photo, "dp-pix", epsilon="1/3", block=8, regions=["2,2,20,20", "10,10,9,9"])
    certificate = release.certificate.to_json()
    assert list(validator.iter_errors(certificate)) == []
    for key in certificate:
        broken = {name: value for name, value in certificate.items() if name != key}
        assert not validator.is_valid(broken), f"the schema does not ask for {key}"
    assert not validator.is_valid({**certificate, "bits": 7})
    assert not validator.is_valid({**certificate, "input": "a.jpg"}), "the schema lets unknown keys through"
