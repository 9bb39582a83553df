"""Whom a drawn head shows: every trait, how often each of its values occurs, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from dpveil.noise.bits import BitSource

TOTAL: Final = 64
"""What the weights of a trait add up to: a power of 2, so that a word of bits decides exactly."""
FINE: Final = 256
"""Steps of a measure between its two ends."""
Weights = Mapping[str, int]
YOUNG: Final = ("18-29", "30-44")
GENDER: Final = {"male": 32, "female": 32}
AGE: Final = {"18-29": 16, "30-44": 16, "45-59": 16, "60-74": 10, "75+": 6}
POSE: Final = {"left": 16, "frontal": 32, "right": 16}
SMILE: Final = {"no": 20, "yes": 44}
TONE: Final = {"1": 13, "2": 13, "3": 13, "4": 13, "5": 12}
"""Five groups of skin tones, from the lightest to the darkest, each with two shades."""
TONES: Final = ("lightest", "light", "medium", "dark", "darkest")
"""What the attribute calls them."""
TONE_OF: Final[Mapping[str, Weights]] = {
    "white": {"1": 40, "2": 24},
    "black": {"4": 28, "5": 36},
    "asian": {"1": 20, "2": 36, "3": 8},
    "indian": {"2": 8, "3": 32, "4": 24},
    "other": TONE,
}
"""The same where a perceived race is kept: nothing else of the head follows from that."""
SHADE: Final = {"light": 32, "deep": 32}
HAIR: Final[Mapping[str, Weights]] = {
    "male": {
        "bald": 7, "buzz": 9, "side": 14, "quiff": 11, "curly": 9, "afro": 5, "receding": 5, "long": 2,
        "bun": 2
    },
    "female": {
        "long": 13, "wavy": 12, "bob": 11, "bun": 8, "pixie": 6, "curly": 5, "afro": 5, "scarf": 2, "side": 2
    },
}  # fmt: skip
OLD_HAIR: Final[Mapping[str, Weights]] = {
    "male": {"bald": 16, "buzz": 6, "side": 14, "quiff": 5, "curly": 4, "afro": 2, "receding": 17},
    "female": {
        "long": 5, "wavy": 8, "bob": 16, "bun": 11, "pixie": 12, "curly": 6, "afro": 3, "scarf": 2, "side": 1
    },
}  # fmt: skip
COLOUR: Final[Mapping[str, Weights]] = {
    "light": {"black": 8, "dark brown": 16, "brown": 16, "auburn": 8, "blond": 16},
    "dark": {"black": 46, "dark brown": 18},
}
GREY: Final[Mapping[str, Weights]] = {
    "18-29": {"none": 64},
    "30-44": {"none": 60, "some": 4},
    "45-59": {"none": 24, "some": 28, "all": 12},
    "60-74": {"some": 18, "all": 30, "white": 16},
    "75+": {"some": 6, "all": 26, "white": 32},
}
EYES: Final[Mapping[str, Weights]] = {
    "light": {"brown": 24, "hazel": 14, "green": 12, "blue": 14},
    "dark": {"brown": 40, "black": 20, "hazel": 4},
}
GLASSES: Final[Mapping[str, Weights]] = {
    "young": {"none": 48, "round": 6, "square": 6, "thin": 4},
    "old": {"none": 34, "round": 8, "square": 12, "thin": 10},
}
BEARD: Final[Mapping[str, Weights]] = {
    "male": {"none": 32, "stubble": 10, "full": 9, "short": 6, "goatee": 3, "moustache": 4},
    "female": {"none": 64},
}
WORN: Final = {"round": 18, "square": 24, "thin": 22}
"""Glasses, and below beards, where they are kept: the same for everybody."""
GROWN: Final = {"stubble": 16, "full": 18, "short": 14, "goatee": 7, "moustache": 9}
MOUTH: Final = {"closed": 32, "open": 32}
GARMENT: Final = {"crew": 24, "shirt": 20, "vee": 20}
EARRINGS: Final[Mapping[str, Weights]] = {
    "male": {"none": 61, "stud": 3}, "female": {"none": 36, "stud": 18, "drop": 10}
}  # fmt: skip
BACKDROP: Final = {str(number): 8 for number in range(8)}
MEASURES: Final = (
    "width", "jaw", "chin", "length", "eyes", "lids", "slant", "brows", "arch", "nose", "bridge",
    "mouth", "lips", "ears", "part", "volume", "cheeks", "garment", "turn",
)  # fmt: skip
"""Measures of a head, each between -1 and 1 in equal steps."""
WORDS: Final = 16 + len(MEASURES)
"""Words of bits for one head."""
DARK_TONES: Final = ("3", "4", "5")


@dataclass(frozen=True)
class Person:
    """Nobody: the traits of one drawn head; any values of any traits go together.

    Every field is a value of the table of its name above; `measures` lie between -1 and 1.
    """

    gender: str = "female"
    age: str = "30-44"
    pose: str = "frontal"
    smile: str = "yes"
    tone: str = "2"
    shade: str = "light"
    hair: str = "bob"
    colour: str = "brown"
    grey: str = "none"
    eyes: str = "brown"
    glasses: str = "none"
    beard: str = "none"
    mouth: str = "closed"
    garment: str = "crew"
    earrings: str = "none"
    backdrop: str = "0"
    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, measure: str) -> float:
        """Return a measure, by default the middle."""
        return self.measures.get(measure, 0.0)


def drawn(bits: BitSource, kept: Mapping[str, str]) -> Person:
    """Return a person whose attributes are `kept`, by name and value; all else is drawn from `bits`.

    Takes `WORDS` words whatever is kept. Each trait follows the weights of its table exactly.
    """
    words = iter(bits.words(WORDS).tolist())
    gender = _pick(GENDER, next(words), kept.get("gender"))
    age = _pick(AGE, next(words), kept.get("age"))
    pose = _pick(POSE, next(words), kept.get("pose"))
    smile = _pick(SMILE, next(words), kept.get("smile"))
    known = kept.get("tone")
    own = None if known is None else tuple(TONE)[TONES.index(known)]
    tone = _pick(TONE_OF[kept.get("perceived-race", "other")], next(words), own)
    depth = "dark" if tone in DARK_TONES else "light"
    span = "young" if age in YOUNG else "old"
    hair = HAIR if age in YOUNG else OLD_HAIR
    return Person(
        gender=gender,
        age=age,
        pose=pose,
        smile=smile,
        tone=tone,
        shade=_pick(SHADE, next(words)),
        hair=_pick(hair[gender], next(words)),
        colour=_pick(COLOUR[depth], next(words)),
        grey=_pick(GREY[age], next(words)),
        eyes=_pick(EYES[depth], next(words)),
        glasses=_had(kept.get("glasses"), WORN, GLASSES[span], next(words)),
        beard=_had(kept.get("beard"), GROWN, BEARD[gender], next(words)),
        mouth=_pick(MOUTH, next(words)),
        garment=_pick(GARMENT, next(words)),
        earrings=_pick(EARRINGS[gender], next(words)),
        backdrop=_pick(BACKDROP, next(words)),
        measures=MappingProxyType(
            {name: _measure(word) for name, word in zip(MEASURES, words, strict=False)}
        ),
    )


def _pick(weights: Weights, word: int, known: str | None = None) -> str:
    """Return the value that is known, or the one whose weight the word falls into."""
    if known is not None:
        return known
    left = word % TOTAL
    for value, weight in weights.items():
        left -= weight
        if left < 0:
            return value
    raise ValueError(f"the weights {dict(weights)} do not add up to {TOTAL}")


def _had(known: str | None, kinds: Weights, usual: Weights, word: int) -> str:
    """Return one of `kinds` for "yes", "none" for "no", and a usual one if nothing is known."""
    return "none" if known == "no" else _pick(kinds if known == "yes" else usual, word)


def _measure(word: int) -> float:
    return (word % FINE) / (FINE - 1) * 2 - 1
