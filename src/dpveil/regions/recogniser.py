"""What lines of text say, by the network that rapidocr's wheel holds for that."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.assets.engines import OnnxRuntime, session
from dpveil.core.array_types import Float32, UInt8
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.io.folders import private_digest
from dpveil.opencv import cv2
from dpveil.regions.tiling import resize_rgb

INSTALL: Final = "pip install 'dpveil[text]'"
FILE: Final = "PP-OCRv6_rec_small.onnx"
SHA256: Final = "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"
"""The checksum of the file in rapidocr 3.10."""
HEIGHT: Final = 48  # rows of a line as the network takes it (rec_img_shape of rapidocr)
NARROWEST: Final = 320  # columns at least: shorter lines are padded with grey
LONGEST_COLUMNS: Final = 6400  # columns at most: longer lines are not read, for memory's sake
LOWEST: Final = 8  # rows of half a rectangle at least, to be read as a line
SQUARE: Final = 1.5  # width by height up to which a line may as well stand on its side
SEVERAL: Final = 0.7
COMPACT: Final = 0.8
SINGLE: Final = 0.97
"""Mean share of several letters, of such in a part that is nearly a square, and share of a lone one, from
which what is read are letters: in portraits the network sees single ones, and some at 0.73."""
FEWEST: Final = 3  # letters in what takes most of the picture: one or two are read in portraits
EDGE: Final = 1.3  # how much smaller than its rectangle the part is in which a lone letter is read again
INNER: Final = 0.9
"""Mean share there from which it is one: 0.9 and more in 59 of 60 marks of letters, and 0.86 and less in
8 of 10 of portraits on a page."""


def network_contents(name: str, sha256: str) -> bytes:
    """Return a network in the wheel of rapidocr, which is not imported.

    Raises `UsageError` with an install hint if it is not installed, or is another one.
    """
    path = network_path(name)
    if path is None:
        raise UsageError("what finds text is not installed", hint=INSTALL)
    contents = path.read_bytes()
    if hashlib.sha256(contents).hexdigest() != sha256:
        hint = f"{INSTALL}, in the version that dpveil's constraints name"
        raise UsageError("the network for text is not the one that dpveil was tested with", hint=hint)
    return contents


def network_path(name: str) -> Path | None:
    """Return where the installed package rapidocr has a network; None without it."""
    spec = find_spec("rapidocr")
    places = (spec.submodule_search_locations if spec else None) or ()
    paths = (Path(place) / "models" / name for place in places)
    return next((path for path in paths if path.is_file()), None)


@dataclass(frozen=True)
class Reading:
    """What a line says, and the network's share for each letter, from 0 to 1."""

    text: str = ""
    shares: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        return sum(self.shares) / max(1, len(self.shares))


class Recogniser:
    """Reads lines of text by onnxruntime; may be called from several threads."""

    def __init__(self, contents: bytes) -> None:
        self._net, self._lock = session(contents, max(1, cv2.getNumThreads())), threading.Lock()
        stated = self._net.get_modelmeta().custom_metadata_map["character"]
        self._letters = ["", *stated.splitlines(), " "]
        self._input = self._net.get_inputs()[0].name

    def __call__(self, line: UInt8[np.ndarray, "h w 3"]) -> Reading:
        """Return what a line of sRGB levels says, upright or upside down, as the network is surer of it.

        Raises `RegionError` if the network fails.
        """
        return max(map(self._read, (line, line[::-1, ::-1])), key=lambda reading: reading.mean)

    def _read(self, line: UInt8[np.ndarray, "h w 3"]) -> Reading:
        width = max(1, round(line.shape[1] * HEIGHT / line.shape[0]))
        if width > LONGEST_COLUMNS:
            return Reading()
        image = np.zeros((1, 3, HEIGHT, max(NARROWEST, width)), np.float32)
        levels = resize_rgb(line, HEIGHT, width)[..., ::-1].astype(np.float32) / 127.5 - 1
        image[0, :, :, :width] = levels.transpose(2, 0, 1)
        try:
            with self._lock:
                ((shares,),) = self._net.run(None, {self._input: image})
        except Exception as error:
            raise RegionError(f"reading text failed ({type(error).__name__})") from error
        return decode(shares, self._letters)


def decode(shares: Float32[np.ndarray, "t k"], letters: list[str]) -> Reading:
    """Return what the likeliest letters of the columns say, as CTC has it (Graves 2006, section 3.1).

    >>> decode(np.eye(3, dtype=np.float32)[[1, 1, 0, 1, 2]], ["", "a", "b"]).text
    'aab'
    """
    best = shares.argmax(axis=1)
    new = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
    return Reading("".join(letters[n] for n in best[new]), tuple(map(float, shares.max(axis=1)[new])))


@lru_cache(maxsize=1)
def recogniser() -> Recogniser | None:
    """Return the network, loaded once per process; None where onnxruntime is not installed or broken.

    Raises `UsageError` as `network_contents`.
    """
    contents = network_contents(FILE, SHA256)
    try:
        OnnxRuntime.check(contents)
    except Exception:  # noqa: BLE001  whatever a missing or broken package raises
        return None
    return Recogniser(contents)


def is_lettering(image: UInt8[np.ndarray, "h w 3"], rectangle: Any) -> bool:
    """Return whether letters are read in a rectangle of `cv2.minAreaRect`; True if nothing here can read.

    What is low enough may be two lines.
    """
    line = cut(image, rectangle)
    if line.shape[0] > line.shape[1]:
        line = np.rot90(line)
    half = len(line) // 2
    several = SEVERAL if line.shape[1] > SQUARE * line.shape[0] else COMPACT
    least = FEWEST if 4 * line.size > 3 * image.size else 1
    for part in (line, line[:half], line[half:]) if LOWEST <= half <= HEIGHT else (line,):
        found = _best(part)
        if found is None:
            return True
        letters = len(found.text.replace(" ", ""))
        if letters < least:
            continue
        if letters > 1 and found.mean >= several:
            return True
        if letters == 1 and found.mean >= SINGLE and _is_letter(image, rectangle):
            return True
    return False


def _is_letter(image: UInt8[np.ndarray, "h w 3"], rectangle: Any) -> bool:
    """Return whether a letter is read without what is around it: the edge of a portrait is read as 0 or D."""
    middle, size, angle = rectangle
    inner = _best(cut(image, (middle, tuple(side / EDGE for side in size), angle)))
    return inner is None or inner.mean >= INNER


def _best(line: UInt8[np.ndarray, "h w 3"]) -> Reading | None:
    """Return the surest reading of a line at any quarter turn; None if nothing here can read."""
    reads = recogniser()
    if reads is None:
        return None
    height, width = line.shape[:2]
    ways = [line] * (height <= SQUARE * width) + [np.rot90(line)] * (width <= SQUARE * height)
    return max(map(reads, ways), key=lambda reading: reading.mean)


def cut(image: UInt8[np.ndarray, "h w 3"], rectangle: Any) -> UInt8[np.ndarray, "a b 3"]:
    """Return what is in a rectangle, upright; beyond the edges of the image these are repeated."""
    middle, size, angle = rectangle
    view = cv2.getRotationMatrix2D(middle, angle, 1.0)
    view[:, 2] += np.array(size) / 2 - np.array(middle)
    shape = [max(1, round(side)) for side in size]
    return np.asarray(cv2.warpAffine(image, view, shape, borderMode=cv2.BORDER_REPLICATE))


def clear_text(line: UInt8[np.ndarray, "h w 3"]) -> str | None:
    """Return what a line says; None if that is not clear."""
    found = _best(line)
    return None if found is None or min(found.shares, default=0.0) < CLEAR else found.text


CLEAR: Final = 0.8  # least share of every letter of a line that is taken at its word
NAMES, NUMBERS = "names", "numbers"
WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


@dataclass(frozen=True)
class Rule:
    """Which text is replaced by what it says: "names", "numbers" (any digit), or a regular expression.

    Names are words with a capital that begin no sentence; see `has_name`. Certificates state an expression by
    a digest alone, as it may hold what is to be hidden.
    """

    words: str
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of(cls, text: str) -> Rule:
        """Return the rule that a user wrote; raises `InvalidParameter`."""
        if text in (NAMES, NUMBERS):
            return cls(text)
        try:
            if text:
                return cls(f"pattern:{private_digest(text.encode())}", re.compile(text))
            problem = "is empty"
        except re.error as error:
            problem = f"is no regular expression ({error.msg})"
        except OSError as error:
            problem = f"needs a folder for dpveil's state ({error})"
        hint = f"write {NAMES}, {NUMBERS}, or a regular expression, as of Python's re"
        raise InvalidParameter("text_like", None, problem, hint=hint)

    def __str__(self) -> str:
        return self.words

    def takes(self, text: str) -> bool:
        """Return whether a line that says this is replaced."""
        if self.pattern is not None:
            return self.pattern.search(text) is not None
        return has_name(text) if self.words == NAMES else any(map(str.isnumeric, text))


def has_name(text: str) -> bool:
    """Return whether a text has a word with a capital that begins no sentence.

    A word begins one if a word in small letters follows; those of scripts without capitals count as names.

    >>> [has_name(text) for text in ("Open daily", "Jane", "ask Jane", "Dear Jane. Come in")]
    [False, True, True, True]
    """
    found, end = [*WORD.finditer(text)], ".!?"
    for place, word in enumerate(found):
        if word[0] == word[0].lower() and word[0] != word[0].upper():
            continue
        before = text[: word.start()].rstrip()
        after = found[place + 1][0] if place + 1 < len(found) else ""
        if (before and before[-1] not in end) or not after.islower():
            return True
    return False
