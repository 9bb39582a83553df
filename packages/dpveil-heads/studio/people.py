"""Who is rendered: identities drawn from a seed, in an order of which every beginning is balanced."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

VALUES = {
    "gender": ("male", "female"),
    "age": ("18-29", "30-44", "45-59", "60-74", "75+"),
    "tone": ("lightest", "light", "medium", "dark", "darkest"),
    "smile": ("no", "yes"),
    "glasses": ("no", "yes"),
    "beard": ("no", "yes"),
    "hair": (
        "short", "crop", "buzz", "receding", "bald", "swept", "long", "wavy", "bob", "curly", "afro",
        "afro short", "tied back", "pixie", "fringe",
    ),
}  # fmt: skip
AGES = ((19, 29), (30, 44), (45, 59), (60, 74), (75, 86))
CELLS = 50  # gender by age by tone: every block of so many people has one of each
COLOURS = {
    "black": (0.007, 0.0055, 0.005), "dark": (0.020, 0.0115, 0.007), "brown": (0.060, 0.030, 0.014),
    "light": (0.175, 0.092, 0.040), "blond": (0.43, 0.265, 0.115), "red": (0.20, 0.066, 0.024),
}  # fmt: skip
"""Colours of hair, linear."""
ANCESTRY = (  # african, asian, caucasian: means of the Dirichlet draws by tone
    ((0.02, 0.04, 0.94), 0.9),
    ((0.04, 0.36, 0.60), 0.35),
    ((0.15, 0.40, 0.45), 0.35),
    ((0.62, 0.20, 0.18), 0.5),
    ((0.95, 0.02, 0.03), 0.9),
)


@dataclass(frozen=True)
class Person:
    """One identity. `old` runs from 0 at 25 years to 1 at 90; `smile` and `teeth` from 0 to 1."""

    seed: int
    number: int
    gender: str
    band: int
    age: float
    tone: int
    ancestry: tuple[float, float, float]
    smile: float
    teeth: float
    jaw: float
    hair: str
    colour: tuple[float, float, float]
    grey: float
    beard: str
    glasses: str
    garment: str
    make_up: float

    @property
    def old(self) -> float:
        """How old the person is, from 0 to 1."""
        return float(np.clip((self.age - 25) / 65, 0, 1)) ** 0.9

    def rng(self, what: str) -> np.random.Generator:
        """Return the randomness of one part of this person, the same at every call."""
        return np.random.default_rng([self.seed, self.number, crc32(what.encode())])

    def labels(self) -> dict[str, int]:
        """Return the index of each of this person's labels in `VALUES`."""
        return {
            "gender": VALUES["gender"].index(self.gender),
            "age": self.band,
            "tone": self.tone,
            "smile": int(self.smile > 0.5),
            "glasses": int(self.glasses != "none"),
            "beard": int(self.beard not in ("none", "shadow")),
            "hair": VALUES["hair"].index(self.hair),
        }


def cell(seed: int, number: int) -> tuple[int, int, int]:
    """Return gender, age band and tone; ten people in a row have both genders and all tones."""
    block, place = divmod(number, CELLS)
    rng = np.random.default_rng([seed, block, 77])
    ages, tones = rng.permutation(5), rng.permutation(5)
    gender, i = place % 2, place // 2
    return gender, int(ages[(i // 5 + 2 * i + 3 * gender) % 5]), int(tones[i % 5])


def draw(seed: int, number: int) -> Person:
    """Return the person of this number."""
    rng = np.random.default_rng([seed, number, 5])
    sex, band, tone = cell(seed, number)
    gender = VALUES["gender"][sex]
    age = float(rng.uniform(*AGES[band]))
    means, purity = ANCESTRY[tone]
    parts = rng.dirichlet(np.array(means) * 4 * (1 + 3 * purity) + 0.05)
    african, asian, caucasian = (float(a) for a in parts)
    mood = rng.choice(["relaxed", "slight", "smile", "teeth"], p=[0.3, 0.25, 0.2, 0.25])
    smile = {"relaxed": rng.uniform(0, 0.15), "slight": rng.uniform(0.2, 0.4)}.get(
        mood, rng.uniform(0.62, 0.95)
    )
    teeth = float(rng.uniform(0.6, 1.0)) if mood == "teeth" else 0.0
    jaw = float(rng.choice([0, rng.uniform(0.0, 0.04)])) if mood == "relaxed" else 0.0
    colour = _colour(rng, tone, african, asian)
    grey = float(np.clip((age - rng.normal(52, 7)) / 22, 0, 1))
    if gender == "female" and age < 72 and rng.random() < 0.6:
        grey *= 0.25  # dyed
    return Person(
        seed, number, gender, band, age, tone, (african, asian, caucasian), float(smile), teeth, jaw,
        _style(rng, gender, age, african), colour, grey, _beard(rng, gender, age),
        _glasses(rng, gender, age), str(rng.choice(["crew", "crew", "scoop", "v"])),
        float(rng.uniform(0.4, 1.0)) if gender == "female" and rng.random() < 0.8 else 0.0,
    )  # fmt: skip


def _colour(rng: np.random.Generator, tone: int, african: float, asian: float) -> tuple:
    chances = [0.10, 0.27, 0.30, 0.15, 0.13, 0.05] if tone == 0 else [0.22, 0.40, 0.27, 0.08, 0.03, 0.0]
    if african + asian > 0.45 or tone > 1:
        chances = [0.65, 0.30, 0.05, 0, 0, 0]
    if african > 0.4:
        chances = [0.8, 0.2, 0, 0, 0, 0]
    name = rng.choice(list(COLOURS), p=chances)
    return tuple(float(a) for a in np.array(COLOURS[name]) * rng.uniform(0.8, 1.25))


def _style(rng: np.random.Generator, gender: str, age: float, african: float) -> str:
    if african > 0.5:
        names, odds = (
            (["afro short", "buzz", "bald", "afro", "receding"], [0.5, 0.2, 0.15, 0.1, 0.05])
            if gender == "male"
            else (["afro", "afro short", "tied back", "curly", "bob"], [0.22, 0.08, 0.28, 0.24, 0.18])
        )
    elif gender == "male":
        names = ["short", "crop", "buzz", "swept", "receding", "bald", "curly"]
        odds = (
            [0.36, 0.22, 0.12, 0.16, 0.04, 0.04, 0.06]
            if age < 45
            else [0.26, 0.12, 0.1, 0.1, 0.28, 0.12, 0.02]
        )
    else:
        names = ["long", "wavy", "bob", "tied back", "pixie", "curly", "fringe"]
        odds = (
            [0.28, 0.26, 0.18, 0.14, 0.02, 0.07, 0.05]
            if age < 60
            else [0.12, 0.20, 0.32, 0.16, 0.08, 0.08, 0.04]
        )
    return str(rng.choice(names, p=odds))


def _beard(rng: np.random.Generator, gender: str, age: float) -> str:
    if gender == "female":
        return "none"
    return str(rng.choice(["none", "shadow", "stubble", "short", "full", "goatee", "moustache"],
                          p=[0.32, 0.32, 0.10, 0.09, 0.06, 0.06, 0.05]))  # fmt: skip


def _glasses(rng: np.random.Generator, gender: str, age: float) -> str:
    often = 0.10 if age < 45 else 0.22
    if rng.random() > often * (1 if gender == "male" else 0.6):
        return "none"
    return str(rng.choice(["metal", "plastic", "dark"]))
