"""The registry: names to classes that are loaded when asked for, in packages that load nothing before."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from dpveil.core import registry
from dpveil.core.registry import Table

SOURCE = Path(importlib.import_module("dpveil").__file__).parent
LAZY = sorted(path for path in SOURCE.rglob("__init__.py") if "= lazy(" in path.read_text(encoding="utf-8"))
TABLES = sorted(name for name, value in vars(registry).items() if isinstance(value, Table))
BUDGET = ["--method", "dp-pix", "--epsilon", "20", "--block", "16", "--neighbourhood", "256"]
HEAVY = {"scipy", "numba", "dp_accounting", "mpmath", "sklearn", "matplotlib", "dlib", "safetensors"}


def package_of(path):
    return ".".join(("dpveil", *path.parent.relative_to(SOURCE).parts))


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_the_class_of_that_name(name):
    table = getattr(registry, name)
    for row, found in table.items():
        assert callable(found)
        assert table.rows[row].endswith(f":{found.__name__}")
        assert getattr(found, "name", row) == row


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_a_lazy_package_gives_what_type_checkers_are_told_of(path):
    """Names under TYPE_CHECKING are those that are public, and nothing else is loaded by name."""
    package = importlib.import_module(package_of(path))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.name: f"{node.module}"
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*told} == {*package.__all__} - {"TABLE", "__version__"}
    assert {*told} <= {*dir(package)} <= {*package.__all__}
    for name, module in told.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
        assert not (path.parent / f"{name}.py").exists(), f"{name} would be shadowed by a module"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


def test_there_are_lazy_packages():
    assert {"dpveil", "dpveil.mechanisms.pixel", "dpveil.faces", "dpveil.codecs"} <= {*map(package_of, LAZY)}


@pytest.mark.parametrize(
    ("regions", "spared"), [("whole", HEAVY), ("2,2,20,20", HEAVY), ("faces", HEAVY - {"dlib"})]
)
def test_one_release_imports_only_what_it_takes(regions, spared, tmp_path, photo):
    """No SciPy, compiler, accountant or codec: they cost more than everything else together."""
    arguments = ["obfuscate", str(photo), "--out", str(tmp_path / "out.png"), *BUDGET, "--regions", regions]
    code = (
        f"import sys; from dpveil.cli import run; code = run({arguments})\n"
        "print(code, *sys.modules, file=open('told', 'w'))"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path)
    code, *loaded = (tmp_path / "told").read_text(encoding="utf-8").split()
    assert code == "0"
    assert not spared & {name.partition(".")[0] for name in loaded}
    ours = {".".join(name.split(".")[:3]) for name in loaded if name.startswith("dpveil.")}
    assert not [name for name in ours if name.startswith(("dpveil.codecs", "dpveil.mechanisms.scalar"))]
    assert not [name for name in loaded if name.startswith("dpveil.mechanisms.pixel.s")]
