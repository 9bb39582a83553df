"""Public names, commands, methods and pages are documented; versions, pins and the schema agree."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import typer.main

import dpveil
from dpveil.catalogue import REQUIRED, UNEXPLAINED, row_of
from dpveil.cli import app
from dpveil.cli.options import method_options
from dpveil.core import registry
from dpveil.core.registry import SCALAR
from dpveil.mechanisms import scalar

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpveil"
METHODS = sorted(registry.METHODS.items())
MECHANISMS = sorted(SCALAR.items())
SECTIONS = ("What it does", "What it promises", "Parameters", "What to know")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def clean(offenders: Iterable[str]) -> None:
    """Fail with a line for each offender."""
    found = list(offenders)
    assert not found, "\n".join([f"{len(found)} offenders", *found])


def parameters(method: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(method)]


def commands() -> list[tuple[str, Any]]:
    named = typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    found = {name: getattr(command, "target_command", command) for name, command in named}
    for name, command in list(found.items()):
        found |= {f"{name} {part}": inner for part, inner in getattr(command, "commands", {}).items()}
    return sorted(found.items())


# Documentation


def test_public_names_are_documented() -> None:
    reference, index = read("docs/reference/api.md"), read("docs/index.md")

    def undocumented(name: str, value: Any) -> Iterator[str]:
        words = inspect.getdoc(value) or ""
        if f"\n::: dpveil.{name}\n" not in reference:
            yield f"docs/reference/api.md lacks dpveil.{name}"
        if not re.match(r"[A-Z`].+?[.:]", words, re.DOTALL):
            yield f"dpveil.{name} has no sentence of its own"
        if inspect.isfunction(value) and ">>>" not in words and f"dpveil.{name}(" not in index:
            yield f"dpveil.{name} has no example that is run"

    values = {name: getattr(dpveil, name) for name in dpveil.__all__}
    clean(
        lack for name, v in values.items() if not isinstance(v, str | tuple) for lack in undocumented(name, v)
    )


def in_docstring(kind: Any, parts: tuple[str, ...], explained: Iterable[str]) -> Iterator[str]:
    """Yield what the docstring and the words of a row of a table lack."""
    words = inspect.getdoc(kind) or ""
    wanted = [*parts, *(f"`{field}`" for field in explained)]
    yield from (f"the docstring of {kind.__name__} lacks {part}" for part in wanted if part not in words)
    if not (kind.summary and kind.source):
        yield f"{kind.__name__} has no summary or no source"


def page_of(name: str) -> str:
    """Return the page of a method: one of its own, or the section of its name on a page of several."""
    for path in (ROOT / "docs" / "methods").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if text.startswith(f"# {name}\n"):
            return text
        if f"\n## {name}\n" in text:
            return section(text, name).replace("\n### ", "\n## ")
    return ""


def section(text: str, name: str) -> str:
    """Return the section of a page that has this name."""
    return text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def lacks(name: str, text: str, wanted: Iterable[str]) -> Iterator[str]:
    """Yield what the documentation of a method or mechanism lacks."""
    yield from (f"the page of {name} lacks {part.strip()!r}" for part in wanted if part not in text)


def as_words(explained: Iterable[str]) -> list[str]:
    """Return how a page names parameters."""
    return [shown for field in explained for shown in (f"`{field}`", f"`--{field.replace('_', '-')}`")]


def test_methods_are_documented() -> None:
    clean(
        lack
        for _, method in METHODS
        for lack in in_docstring(method, ("Raises", "Source:", ">>>"), set(parameters(method)) - {"epsilon"})
    )
    clean(
        f"{method.__name__} is not {name}"
        for name, method in METHODS
        if method.name != name or name.replace("-", "") != method.__name__.lower()
    )


def test_methods_have_pages() -> None:
    index = read("docs/methods/index.md")
    for name, _ in METHODS:
        assert re.search(rf"\[`{name}`\]\((?:{name}\.md|[a-z-]+\.md#{name})\)", index), name
    headings = [f"\n## {part}" for part in SECTIONS]
    clean(
        lack
        for name, method in METHODS
        for lack in lacks(name, page_of(name), [*headings, *as_words(parameters(method))])
    )


def test_mechanisms_are_documented() -> None:
    common = {field.name for field in dataclasses.fields(scalar.ScalarMechanism)}
    assert [name for name, mechanism in MECHANISMS if mechanism.name != name] == []
    clean(
        lack
        for _, mechanism in MECHANISMS
        for lack in in_docstring(mechanism, ("Source:", ">>>"), set(parameters(mechanism)) - common)
    )


def test_mechanisms_have_sections() -> None:
    page = read("docs/mechanisms.md")
    common = [field.name for field in dataclasses.fields(scalar.ScalarMechanism)]
    clean(f"docs/mechanisms.md lacks {part}" for part in as_words(common) if part not in page)
    for name, mechanism in MECHANISMS:
        assert f"[`{name}`](#{name})" in page
        own = [field for field in parameters(mechanism) if field not in common]
        clean(lacks(name, section(page, name), [f"(pictures/mechanism-{name}.png)", *as_words(own)]))


def test_commands_have_help_and_examples() -> None:
    def unhelpful(name: str, command: Any) -> Iterator[str]:
        if not re.search(rf"dpveil {name}\b", command.help or ""):
            yield f"dpveil {name} --help shows no example"
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help" and not parameter.help:
                yield f"dpveil {name} {parameter.opts[0]} has no help"

    clean(lack for name, command in commands() for lack in unhelpful(name, command))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_every_method_parameter_is_an_option_with_help(name: str, method: Any) -> None:
    options = {option.opts[0]: option for option in method_options(name)}
    common = {text for parameter in dict(commands())["obfuscate"].params for text in parameter.opts}
    assert not common & set(options)
    for field in parameters(method):
        told = options[f"--{field.replace('_', '-')}"].help
        assert not told.startswith(UNEXPLAINED)
        if (value := row_of(method)["parameters"][field]) not in (None, False):
            assert ("[required" if value == REQUIRED else f"[default: {value}]") in told


def test_every_page_is_in_the_navigation_or_in_the_table_of_its_folder() -> None:
    nav = read("mkdocs.yml")
    for page in (ROOT / "docs").rglob("*.md"):
        index = page.with_name("index.md")
        listed = index.exists() and f"({page.name}" in index.read_text(encoding="utf-8")
        found = f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in nav
        assert found or listed, f"{page.name} is neither in mkdocs.yml nor in the table beside it"


def test_errata_page_and_tests_agree() -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    corrected = page.partition("## Pending")[0]
    listed = set(re.findall(r"^### (E\d+):", corrected, re.MULTILINE))
    shown = set()
    for path in (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "packages").glob("*/tests/test_*.py")):
        shown |= {
            match.upper()
            for match in re.findall(r"def test_\w*?_(e\d+)(?=_)", path.read_text(encoding="utf-8"))
        }
    assert "E12" in listed
    assert shown <= listed, f"tests show {shown - listed}, which the errata page does not list"
    for section in re.split(r"^### ", corrected, flags=re.MULTILINE)[1:]:
        references = re.findall(r"`([\w/-]+\.py)::(\w+)`", section)
        assert references, f"no check is named for {section.splitlines()[0]}"
        for file, test in references:
            path = ROOT / file
            assert path.exists(), f"{file} does not exist"
            assert f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"


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


def test_every_slow_test_exists() -> None:
    slow = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8")
    for test in slow.split()[::2]:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (
            f"{test} is gone: take its line out"
        )


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
