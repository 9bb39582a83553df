"""How strong the attacks are on AT&T's faces: shares of probes that each names.

Of each of 40 people the first 8 photos are the attacker's, who has their releases by the same method, and
the other 2 are attacked: chance is 2.5 %. `nothing` shows the photos as they are; blur, mosaics and DP-SVD
must visibly fail. b = 4, k = 48, i = 4 and m = 1 are Reilly & Fan's (2021, table I), of whose table IV the
paper's attackers name 0.68 for DP-Pix at ε = 0.5, about 0.6 for DP-SVD and 0.04 for Snow at δ = 0.1.
Intervals are 95 %, by bootstrap over people. A face that is not found is not named.

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
    "DP-SVD, i = 4, ε = 10": ("dp-svd", {"rank": 4, "epsilon": 10}),
    "Snow, δ = 0.1": ("snow", {"delta": "0.1"}),
    "DP-Pix, b = 16, m = 16, ε = 0.5": ("dp-pix", {"block": 16, "neighbourhood": 16, "epsilon": "0.5"}),
    "DP-Pix, b = 16, any image, ε = 1": ("dp-pix", {"block": 16, "epsilon": 1}),
    "fill": ("fill", {}),
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
    made = []
    for setting in settings:
        background, releases, people = sides(setting)
        row: dict[str, object] = {"setting": setting}
        for attack in attacks:
            start = time.perf_counter()
            rate = identification(attack.fit(background).score(releases), people)
            lost = f", {rate.failures} without an answer" if rate.failures else ""
            row[attack.label] = f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]{lost}"
            print(
                f"{setting}: {attack.label} {row[attack.label]} {time.perf_counter() - start:.1f} s",
                flush=True,
            )
        made.append({**row, "chance": 1 / 40})
    return made


def main() -> None:
    if not DATA.is_dir():
        print("needs AT&T's faces in ../shared/data/att_faces", file=sys.stderr)
        return
    asked = [word for word in sys.argv[1:] if word != "quick"]
    quick = "quick" in sys.argv[1:]
    settings = list(SETTINGS)[:3] if quick else list(SETTINGS)
    table = rows(usable(asked or ATTACKS), settings)
    if not asked:
        report("attack_strength-quick" if quick else "attack_strength", table, notes=(load_note(),))


if __name__ == "__main__":
    main()
