"""Plug-ins: found by entry point, used like dpveil's own, missed where absent, and harmless where broken."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from made_faces import faces, source_of, train
from plugin_packages import install

import dpveil
from dpveil.assets.trained_files import save
from dpveil.attacks import Background, View
from dpveil.catalogue import build, method_from_certificate, methods
from dpveil.cli import run
from dpveil.codecs import PCA, load
from dpveil.core import registry
from dpveil.core.registry import ATTACKS, CODECS, DETECTORS, METHODS, Table
from dpveil.errors import MissingPlugin, ModelError, PluginError, PluginWarning, UnknownName
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import Faces

TUTORIAL = Path(__file__).parent.parent.parent / "CONTRIBUTING.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TUTORIAL.read_text("utf-8"), re.MULTILINE | re.DOTALL)
METHOD, DETECTOR, ATTACK = (
    block.partition(end)[0]
    for block, end in zip(BLOCKS, ("\n\nmethod = ", "\n\nprint(", "\n\ndef seen("), strict=True)
)
"""The tutorial's classes, without the lines that try them out."""
FAULTY, ALIAS = METHOD.replace("noisy-mean", "faulty"), "\n\nThing = NoisyMean\n"
RUIN = "raise RuntimeError('this module was imported')"
OTHER = """

from dpveil.codecs import PCA

class Other(PCA):
    name = "other-pca"
"""
PARTS = METHOD + DETECTOR + ATTACK + OTHER
GROUPS = {
    "dpveil.detectors": {"middle": "plugin_parts:Middle"},
    "dpveil.codecs": {"other-pca": "plugin_parts:Other"},
    "dpveil.attacks": {"guess": "plugin_parts:Guess"},
}


def command(folder: Path, *arguments: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    paths = [*([str(site)] if site else []), str(Path(dpveil.__file__).parent.parent)]
    return subprocess.run(
        [sys.executable, "-m", "dpveil", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tutorials_method_is_installed_released_with_verified_and_missed(
    tmp_path, photo, capsys, monkeypatch
):
    """Whoever follows CONTRIBUTING.md in a package of their own has a method like any other."""
    site = tmp_path / "site"
    groups = {"dpveil.methods": {"noisy-mean": "noisy_mean:NoisyMean"}}
    install(site, "dpveil-noisy-mean", groups, {"noisy_mean": METHOD})
    release = ["obfuscate", str(photo), "--out", "out.png", "--method", "noisy-mean", "--epsilon", "20"]
    regions = ["--regions", "20,30,88,120", "--regions", "150,30,50,50"]
    made = command(tmp_path, *release, *regions, site=site)
    assert made.returncode == 0, made.stderr
    checked = command(tmp_path, "verify", "out.png", site=site)
    assert checked.returncode == 0, checked.stdout
    listed = json.loads(command(tmp_path, "methods", "--json", site=site).stdout)["methods"]
    assert [row["name"] for row in listed] == [*METHODS.rows, "noisy-mean"]
    assert listed[-1]["parameters"] == {"epsilon": "required"}

    monkeypatch.chdir(tmp_path)
    assert run(["verify", "out.png"]) == 1
    missed = "".join(capsys.readouterr())
    assert "'noisy-mean' is neither in this version" in missed
    assert "(dpveil.methods)" in missed
    assert run([*release, "--force"]) == 2
    assert "unknown method 'noisy-mean'" in capsys.readouterr().err


def test_an_altered_certificate_of_a_plugin_does_not_verify(installed, tmp_path):
    """What a plug-in's method promises is recomputed like any other promise."""
    groups = {"dpveil.methods": {"noisy-mean": "noisy_mean_here:NoisyMean"}}
    installed("dpveil-noisy-mean", groups, {"noisy_mean_here": METHOD})
    path = tmp_path / "out.png"
    release = dpveil.obfuscate(np.full((20, 30, 3), 90, np.uint8), "noisy-mean", epsilon=20)
    release.save(path)
    assert dpveil.verify(path).status == "consistent"
    certificate = path.with_name("out.png.certificate.json")
    text = certificate.read_text(encoding="utf-8")
    for old, new in (('"epsilon": 20', '"epsilon": 2'), ('"noisy-mean"', '"fill"')):
        assert old in text
        certificate.write_text(text.replace(old, new), encoding="utf-8")
        assert dpveil.verify(path).status == "inconsistent"


@pytest.fixture
def parts(installed):
    """Install a detector, a codec and an attack; return what uninstalls them."""
    installed("dpveil-parts", GROUPS, {"plugin_parts": PARTS})

    def uninstall():
        for table in (ATTACKS, CODECS, DETECTORS):
            vars(table)["plugins"] = {}
            vars(table)["_ready"].clear()

    return uninstall


def test_detectors_codecs_and_attacks_are_found_by_name(parts):
    assert CODECS["other-pca"].name == "other-pca"
    [region] = Faces(detector="middle", margin=0)(dpveil.Photo(np.zeros((40, 60, 3), np.uint8)))
    assert region.box == dpveil.Box(15, 10, 30, 20)
    assert Faces(detector="middle").description == "faces detector=middle"
    assert Faces().description.startswith("faces")  # none is taken unasked


def told(capsys, *arguments):
    """Run the command line; return its exit code, and all that it printed."""
    code = run([str(argument) for argument in arguments])
    return code, "".join(capsys.readouterr())


@pytest.fixture(scope="module")
def trained():
    return train(PCA, source_of(faces(60, seed=1, canvas=(32, 32, 3))), length=5)


def test_a_codec_releases_and_is_missed_by_name(parts, photo, trained, tmp_path, capsys):
    codec, out = tmp_path / "codec.safetensors", tmp_path / "out.png"
    other = CODECS["other-pca"](**{f.name: getattr(trained, f.name) for f in fields(trained)})
    digest = save(other, codec)
    release = ("obfuscate", photo, "--out", out, "--method", "latent", "--codec", codec, "--epsilon", 2)
    assert told(capsys, *release, "--guarantee", "pure", "--regions", "whole")[0] == 0
    verified = dpveil.verify(out)
    assert (verified.status, verified.publishable) == ("consistent", True)
    assert verified.certificate.parameters["codec"] == f"other-pca 5 sha256:{digest}"
    parts()
    [problem] = dpveil.verify(out).problems
    assert "unknown codec 'other-pca'" in problem
    with pytest.raises(ModelError, match="is of the kind 'other-pca'"):
        load(codec)


def test_an_attack_runs_and_is_missed_by_name(parts, trained):
    views = [
        View(np.full((8, 8, 1), level, np.uint8), np.ones((8, 8), np.bool_)) for level in (20, 24, 200, 190)
    ]
    release = dpveil.obfuscate(views[2].image, "dp-pix", epsilon=1000, block=8, bits=dpveil.SeededBits(1))
    attacker = ATTACKS["guess"]().fit(Background(tuple(views), tuple(views), ("anna", "anna", "bob", "bob")))
    scores = attacker.score([View(release.image, views[2].hidden)])
    assert scores.names[int(scores.likeness.argmax())] == "bob"
    parts()
    with pytest.raises(UnknownName, match="unknown attack 'guess'"):
        ATTACKS["guess"]


def test_names_of_dpveil_stay_dpveils_and_that_is_said_once(installed):
    with pytest.warns(PluginWarning, match=r"impostor 0\.1 cannot replace dpveil's own method") as told:
        installed("impostor", {"dpveil.methods": {"dp-pix": "impostor:DPPix"}}, {"impostor": RUIN})
    assert len(told) == 1
    assert METHODS["dp-pix"] is DPPix
    assert [row["name"] for row in methods()].count("dp-pix") == 1


@pytest.mark.parametrize(
    ("entry", "module", "words"),
    [
        ("broken_import:Thing", RUIN, "cannot be loaded: RuntimeError: this module was imported"),
        ("broken_lack:Thing", "", "cannot be loaded: AttributeError"),
        ("broken_absent.inner:Thing", "", "cannot be loaded: ModuleNotFoundError"),
        ("broken_exit:Thing", "import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("broken_base:Thing", "class Thing:\n    name = 'faulty'", "does not extend dpveil"),
        ("broken_kind:Thing", "Thing = 'dp-pix'", "does not extend"),
        ("broken_half:Thing", METHOD.replace("def _draw", "def draw") + ALIAS, "lacks _draw"),
        ("broken_silent:Thing", METHOD.replace("source:", "origin:") + ALIAS, "lacks source"),
        ("broken_name:Thing", METHOD + ALIAS, "calls itself 'noisy-mean'"),
        (
            "broken_data:Thing",
            FAULTY.replace("@dataclass", "@(lambda **_: lambda x: x)") + ALIAS,
            "not a dataclass",
        ),
        ("broken_field:Thing", FAULTY.replace("Positive = Positive()", "float") + ALIAS, "parameters"),
    ],
)
def test_a_broken_plugin_is_named_when_asked_for_and_breaks_nothing_else(installed, entry, module, words):
    name = entry.partition(":")[0].partition(".")[0]
    installed("dpveil-faulty", {"dpveil.methods": {"faulty": entry}}, {name: module})
    assert build("dp-pix", {"epsilon": 1}) == DPPix(epsilon=1)
    for asked in (build, method_from_certificate):
        with pytest.raises(PluginError, match=re.escape(words)) as caught:
            asked("faulty", {"epsilon": 1})
        assert "'faulty' of dpveil-faulty 0.1" in str(caught.value)
    with pytest.warns(PluginWarning, match="dpveil-faulty"):
        assert [row["name"] for row in methods()] == [*METHODS.rows]


def test_two_packages_with_one_name_are_both_refused(installed):
    for package in ("one", "two"):
        installed(
            f"dpveil-{package}", {"dpveil.methods": {"same": f"same_{package}:M"}}, {f"same_{package}": RUIN}
        )
    with pytest.raises(PluginError, match=r"'same' is in dpveil-one 0\.1 and dpveil-two 0\.1"):
        build("same", {})


def test_a_certificate_imports_nothing_by_its_own_words(installed):
    """Modules that are at hand, and entry points of other groups and names, are not what it can load."""
    groups = {"dpveil.attacks": {"trap": "plugin_trap:A"}, "console_scripts": {"trapped": "plugin_trap:A"}}
    installed("dpveil-trap", groups, {"plugin_trap": RUIN})
    for name in (
        "plugin_trap",
        "plugin_trap:A",
        "trap",
        "trapped",
        "Dp-Pix",
        "dp-pix ",
        "os:system",
        "../x",
        "",
    ):
        with pytest.raises(MissingPlugin, match=re.escape(f"method {name!r} is neither")):
            method_from_certificate(name, {})
    assert "plugin_trap" not in sys.modules


# The registry: names to classes that are loaded when asked for, in packages that load nothing before.


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
    assert {*told} == {*package.__all__} - {"__version__"}
    assert {*told} <= {*dir(package)} <= {*package.__all__}
    for name, module in told.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
        assert not (path.parent / f"{name}.py").exists(), f"{name} would be shadowed by a module"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


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
