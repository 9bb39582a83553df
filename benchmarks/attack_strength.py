"""How strong the attacks are on AT&T's faces: the share of releases that each names, with 95 % intervals.

Of each of 40 people the first 8 photos are the attacker's, who has their releases by the same method, and
the other 2 are attacked: chance is 0.025. `nothing` shows the photos as they are. Blur and mosaics promise
nothing and must visibly fail, and so must promises about single pixels (m = 1) and DP-SVD's; the last setting
is about any two images: at ε = 1 nobody can name more than 0.065 by one release. `averaged` and `composed`
have four of each photo. b = 4, k = 48, i = 4 and m = 1 are Reilly & Fan's (2021, table I), and their rates
stand in the last row (tables IV and V). A face that is not found is not named. `embedding-parrot` is run on
photos as they are alone. `network` and `residual` need the extra train.

    python benchmarks/attack_strength.py [quick] [ATTACK...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

import dpveil
from dpveil.attacks.base import Attack, Background, View
from dpveil.attacks.labels import usable
from dpveil.attacks.measures import identification
from dpveil.core.registry import METHODS
from timing import load_note, report

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "att_faces"
KNOWN = 8
SEED = 16
SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
    "nothing": ("", {}),
    "blur, σ = 8": ("blur", {"sigma": 8}),
    "mosaic, b = 16": ("mosaic", {"block": 16}),
    "DP-Pix, b = 4, m = 1, ε = 0.5": ("dp-pix", {"block": 4, "neighbourhood": 1, "epsilon": "0.5"}),
    "DP-Samp, k = 48, m = 1, ε = 0.5": ("dp-samp", {"clusters": 48, "neighbourhood": 1, "epsilon": "0.5"}),
    "DP-SVD, i = 4, ε = 0.01": ("dp-svd", {"rank": 4, "epsilon": "0.01"}),
    "Snow, δ = 0.1": ("snow", {"delta": "0.1"}),
    "DP-Pix, b = 16, any image, ε = 1": ("dp-pix", {"block": 16, "epsilon": 1}),
}
ATTACKS = (
    "pixels",
    "eigenfaces",
    "shown",
    "subspaces",
    "intersected",
    "network",
    "residual",
    "embedding",
    "embedding-parrot",
    "restored(pixels)",
    "averaged(pixels)",
    "composed(pixels)",
)
"""What lies around a region and where it is tells nothing here: all of a photo is its region."""
FIRST = {"embedding-parrot": 1}
"""On how many of the settings attacks are run that take minutes each."""
PAPER: dict[str, object] = {
    "DP-Pix, b = 4, m = 1, ε = 0.5": 0.68,
    "DP-Samp, k = 48, m = 1, ε = 0.5": 0.35,
    "Snow, δ = 0.1": 0.04,
}
"""What Reilly & Fan's attacker reaches (2021, tables IV and V), on other splits of the same kind.

Not of DP-SVD, whose ε has another unit there (errata E22)."""
MORE = 4
"""Releases of each photo that the attacker of `averaged` has."""


@dataclass(frozen=True)
class Shot:
    person: str
    number: int
    image: np.ndarray


@cache
def shots() -> tuple[Shot, ...]:
    found = []
    for path in sorted(DATA.glob("s*/*.pgm")):
        image = np.asarray(Image.open(path).convert("L"))[..., None]
        found.append(Shot(path.parent.name, int(path.stem), image))
    return tuple(found)


def shown(shot: Shot, setting: str) -> View:
    """Return what attackers see of a photo, which is its region: with further releases by noisy methods."""
    name, settings = SETTINGS[setting]
    hidden = np.full(shot.image.shape[:2], bool(name))
    if not name:
        return View(shot.image, hidden)
    method = METHODS[name](**settings)
    draws = [
        method.release(shot.image, bits=dpveil.SeededBits(SEED, f"{setting} {shot.person} {shot.number} {n}"))
        for n in range(MORE)
    ]
    first, *others = (View(image, hidden) for image in draws)
    return View(first.image, hidden, None, 0, tuple(others))


def sides(setting: str) -> tuple[Background, list[View], list[str]]:
    known = [shot for shot in shots() if shot.number <= KNOWN]
    probes = [shot for shot in shots() if shot.number > KNOWN]
    background = Background(
        tuple(shown(shot, "nothing") for shot in known),
        tuple(shown(shot, setting) for shot in known),
        tuple(shot.person for shot in known),
    )
    return background, [shown(shot, setting) for shot in probes], [shot.person for shot in probes]


def rows(attacks: Sequence[Attack], settings: Sequence[str]) -> list[dict[str, object]]:
    """Return a row for each attack: share named, with its interval, by each setting that it is run on."""
    made: dict[str, dict[str, object]] = {
        one.label: {"attack": one.label, **dict.fromkeys(settings, "")} for one in attacks
    }
    for place, setting in enumerate(settings):
        background, releases, people = sides(setting)
        for attack in attacks:
            if place >= FIRST.get(attack.label, len(settings)):
                continue
            start = time.process_time()
            rate = identification(attack.fit(background).score(releases), people)
            found = [round(value, 3) for value in (rate.value, rate.low, rate.high)]
            made[attack.label][setting] = found
            lost = f", {rate.failures} without an answer" if rate.failures else ""
            print(f"{setting}: {attack.label} {found}{lost} {time.process_time() - start:.1f} s", flush=True)
    paper = {setting: PAPER.get(setting, "") for setting in settings}
    return [*made.values(), {"attack": "network of Reilly & Fan", **paper}]


def main() -> None:
    if not DATA.is_dir():
        print("needs AT&T's faces in ../shared/data/att_faces", file=sys.stderr)
        return
    asked = [word for word in sys.argv[1:] if word != "quick"]
    quick = "quick" in sys.argv[1:]
    settings = list(SETTINGS)[:3] if quick else list(SETTINGS)
    table = rows(usable(asked or ATTACKS), settings)
    if not asked:
        note = f"{time.process_time():.0f} s of processor time in all."
        report("attack_strength-quick" if quick else "attack_strength", table, notes=(note, load_note()))


if __name__ == "__main__":
    main()
