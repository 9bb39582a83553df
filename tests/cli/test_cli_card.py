"""`dpveil card`: what it states is what was verified, it names nobody, and refuses everything else."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.cards.croissant import CROISSANT
from dpveil.errors import NoRegion
from dpveil.noise.bits import SecureBits, SeededBits
from dpveil.regions import Finder
from dpveil.release.saving import SUFFIX
from dpveil.synthesis import SetPlan
from dpveil.synthesis.saving import save

PHOTO = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)
MADE = {"ada/1.png": 1, "ada/2 #%3.png": "1/3", "bob/1.jpg": 2, "eve[1]/x.png": "0.5"}
VALIDATE = """
import json, sys, mlcroissant
found = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = found.metadata.ctx.issues
records = [str(one["pictures/path"]) for one in found.records("pictures")]
print(json.dumps({"errors": sorted(issues.errors), "warnings": sorted(issues.warnings), "records": records}))
"""
PYTHON = os.environ.get("MLCROISSANT_PYTHON", sys.executable)

PAGE = (Path(__file__).parent.parent.parent / "docs" / "datasets.md").read_text(encoding="utf-8")


def release(path, epsilon, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    dpveil.obfuscate(PHOTO, "dp-pix", epsilon=epsilon, block=16, regions="whole", **settings).save(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for name, epsilon in MADE.items():
        release(folder / name, epsilon)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out"


def plan(**changed):
    settings = {"epsilon": 1, "delta": "1e-6", "people": 9000, "codec": f"gan 128 sha256:{64 * '0'}"}
    return SetPlan(**{**settings, "pictures": 3, **changed})


def synthetic(path, bits=None):
    pictures = np.arange(3 * 8 * 8 * 3, dtype=np.uint8).reshape(3, 8, 8, 3)
    return save(path, plan(), pictures, bits or SecureBits())


def read(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def keys(value):
    """Yield all names in a document of JSON-LD, but those of data."""
    for name, part in value.items() if isinstance(value, dict) and value.get("@type") != "@json" else ():
        yield name
        yield from keys(part)
    for part in value if isinstance(value, list) else ():
        yield from keys(part)


def identities(value):
    """Return the @id of all nodes, and of all references, which are nodes with nothing else."""
    nodes, references = [], []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
            if "@id" in one:
                (references if len(one) == 1 else nodes).append(one["@id"])
        elif isinstance(one, list):
            waiting += one
    return nodes, references


def place_of(address):
    """Return the name that an address beside the card is of."""
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    return unquote(parts.path)


def check_structure(path):
    """Check what Croissant asks for, and that every file is where the card says; return the card."""
    card = read(path)
    context = card["@context"]
    assert (card["@type"], card["conformsTo"]) == ("sc:Dataset", list(CROISSANT))
    body = {name: part for name, part in card.items() if name != "@context"}
    prefixes = {name.partition(":")[0] for name in keys(body) if ":" in name}
    assert {"rai", "dpveil"} <= prefixes <= set(context)
    own = {name.partition(":")[2] for name in keys(body) if name.startswith("dpveil:")}
    assert all(f"`dpveil:{name}`" in PAGE for name in own)
    nodes, references = identities(body)
    assert len(nodes) == len(set(nodes))
    assert set(references) <= set(nodes)
    for name in ("fileSet", "fileProperty", "extract", "source", "field", "recordSet", "includes"):
        assert context[name] == f"cr:{name}"
    files = [one for one in card["distribution"] if one["@type"] == "cr:FileObject"]
    (every,) = (one["includes"] for one in card["distribution"] if one["@type"] == "cr:FileSet")
    for name in (one["name"] for one in files):
        found = any(fnmatchcase(name, pattern) for pattern in every)
        assert found is (not name.endswith("sheet.png")), (name, every)
    for one in files:
        name = place_of(one["contentUrl"])
        assert name == one["name"]
        assert place_of(one.get("dpveil:certificate", quote(f"{name}{SUFFIX}"))) == f"{name}{SUFFIX}"
        assert not {"", ".", ".."} & {*name.split("/")}
        data = (path.parent / name).read_bytes()
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
        assert one["encodingFormat"] == ("image/jpeg" if name.endswith("jpg") else "image/png")
    return card


def test_a_card_states_every_file_and_their_sum(shell, folder, tmp_path):
    code, out, err = shell("card", "out", "--out", "out/card.json")
    assert (code, "WARNING: weak in all" in err) == (0, True)
    assert out == "out/card.json: 4 files\nper person    at most 3.834-DP, any-image: weak\n"
    card = check_structure(folder / "card.json")
    told = {one["name"]: one.get("dpveil:guarantee") for one in card["distribution"]}
    stated = {name: told[name]["dpveil:epsilon"] for name in MADE}
    assert stated == {**MADE, "ada/2 #%3.png": 0.333333333333334, "eve[1]/x.png": 0.5}
    for one in card["distribution"][:-1]:
        certificate = read(folder / f"{one['name']}.certificate.json")
        assert one["dpveil:guarantee"]["dpveil:strength"] == certificate["strength"]
        scope = dpveil.verify(folder / one["name"]).certificate.composition.scope
        assert one["dpveil:guarantee"]["dpveil:covers"] == scope.covers
        assert one["dpveil:guarantee"]["dpveil:inTheClear"] == list(scope.in_the_clear)
        assert one["dpveil:parameters"]["@value"] == certificate["parameters"]
        assert (one["dpveil:mechanism"], one["dpveil:tool"]) == ("dp-pix", certificate["tool"])
        assert (folder / unquote(one["dpveil:certificate"])).exists()
    (most,) = card["dpveil:perPerson"]
    assert most["dpveil:epsilon"] == 3.83333333333334
    assert (most["dpveil:kind"], most["dpveil:relation"]) == ("pure", "any-image")


def seeded(folder):
    release(folder / "s.png", 1, bits=SeededBits(1))


def original(folder):
    shutil.copy(folder / "ada" / "1.png", folder / "original.png")


def changed(folder):
    Image.fromarray(PHOTO).save(folder / "eve[1]" / "x.png")  # no release has more than one colour


def edited(folder):
    path = folder / "ada" / "1.png.certificate.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"epsilon": 1', '"epsilon": 2'), encoding="utf-8"
    )


class Nobody(Finder):
    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


def copied(folder):
    method = {"method": "dp-pix", "epsilon": 1, "block": 16}
    dpveil.obfuscate(PHOTO, **method, regions=[Nobody()], if_none="copy").save(folder / "c.png")


def linked(folder):
    (folder / "l.png").symlink_to(folder / "ada" / "1.png")


def inner_set(folder):
    synthetic(folder / "made")


def heuristic(folder):
    dpveil.obfuscate(PHOTO, "blur", sigma=3, regions="whole").save(folder / "h.png")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (seeded, "seeded bits"),
        (original, "has no certificate"),
        (changed, "SHA-256"),
        (edited, "edited|checksum|altered|changed"),
        (copied, "it is a copy of the original"),
        (linked, "symbolic link"),
        (
            inner_set,
            "out holds one synthetic data set, .*: dpveil card out/made --out out/made.json$",
        ),
        (heuristic, "no formal guarantee"),
    ],
)
def test_what_is_no_publishable_release_refuses_the_card(shell, folder, spoil, told):
    spoil(folder)
    code, _, err = shell("card", "out", "--out", "card.json")
    assert (code, (folder.parent / "card.json").exists()) == (1, False)
    assert re.search(told, err), err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("card", "missing", "--out", "card.json"), 2),
        (("card", "out", "--out", "card.txt"), 2),
        (("card", "out", "--out", "who.json"), 4),
        (("card", "out", "--out", "card.json", "--at-least", "strong"), 1),
    ],
)
def test_wrong_calls_end_in_one_line(shell, folder, arguments, code):
    (folder.parent / "who.json").write_text("mine", encoding="utf-8")
    (folder.parent / "empty").mkdir()
    found, out, err = shell(*arguments)
    assert (found, out) == (code, "")
    assert (err.startswith("dpveil: "), err.count("\n")) == (True, 1)
    assert not (folder.parent / "card.json").exists()
    assert (folder.parent / "who.json").read_text(encoding="utf-8") == "mine"


def test_a_synthetic_set_has_one_promise(shell, tmp_path):
    made = synthetic(tmp_path / "made")
    code, out, err = shell("card", "made", "--out", "card.json")
    assert (code, "WARNING" in err) == (0, False)
    assert "per person    at most (1, 1e-06)-DP, person: strong\n" in out
    card = check_structure(tmp_path / "card.json")
    (most,) = card["dpveil:perPerson"]
    assert (most["dpveil:epsilon"], most["dpveil:delta"], most["dpveil:relation"]) == (1, 1e-06, "person")
    assert card["dpveil:parameters"]["@value"] == made.plan.parameters()
    assert {one["name"] for one in card["distribution"][:-1]} == {f"made/{name}" for name in made.files}
    assert card["distribution"][-1]["includes"] == ["made/[0-9]*.png"]
    assert shell("verify", "made")[0] == 0


@pytest.mark.parametrize("kind", ["releases", "set"])
def test_mlcroissant_accepts_the_card_and_reads_the_pictures(shell, folder, tmp_path, kind):
    if subprocess.run([PYTHON, "-c", "import mlcroissant"], capture_output=True, check=False).returncode:
        pytest.skip("mlcroissant is not installed: name a Python that has it in MLCROISSANT_PYTHON")
    synthetic(tmp_path / "made")
    name, count = ("out", len(MADE)) if kind == "releases" else ("made", 3)
    about = ("--license", "CC-BY-4.0", "--url", "https://example.org/set", "--creator", "Studio")
    shell("card", name, "--out", "card.json", *about, "--published", "2026-12-31")
    run = [PYTHON, "-c", VALIDATE, str(tmp_path / "card.json")]
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    told = subprocess.run(run, capture_output=True, text=True, check=True, env=clean)
    found = json.loads(told.stdout.splitlines()[-1])
    assert found["errors"] == []
    assert all(re.search("version|citeAs", warning) for warning in found["warnings"]), found["warnings"]
    assert len(found["records"]) == count


def test_a_seeded_or_changed_set_has_no_card(shell, tmp_path):
    synthetic(tmp_path / "seeded", SeededBits(1))
    synthetic(tmp_path / "changed")
    (tmp_path / "changed" / "000001.png").write_bytes(b"x")
    for name in ("seeded", "changed"):
        assert shell("card", name, "--out", "card.json")[0] == 1
        assert not (tmp_path / "card.json").exists()


def test_a_set_s_card_lies_above_it(shell, tmp_path):
    synthetic(tmp_path / "made")
    assert shell("card", "made", "--out", "made/card.json")[0] == 2
    assert not (tmp_path / "made" / "card.json").exists()
