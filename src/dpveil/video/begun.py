"""What a rendering that was begun is of: a digest of each setting, and words for those that differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.envelope import this_tool

if TYPE_CHECKING:
    from dpveil.video.plan import VideoPlan

WORDS: Final = {
    "clip": "another clip",
    "plan": "another plan or other options",
    "out": "another name",
    "seed": "another seed",
    "payer": "another ledger or subject",
    "tool": "another version of dpveil",
}
"""What is said of each setting that differs."""
OTHERS: Final = "other settings"


def settings_of(plan: VideoPlan, out: Path, payer: Sequence[str] | None, seed: int | None) -> dict[str, Any]:
    """Return the settings of a rendering to `out`."""
    about = {"clip": plan.facts.sha256, "plan": plan.sha256, "out": out.name}
    return {**about, "seed": seed, "payer": payer, "tool": this_tool()}


def digest_of(settings: Mapping[str, Any]) -> str:
    """Return SHA-256 of settings, in hexadecimal.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digests_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each setting, by its name."""
    return {name: digest_of({name: value}) for name, value in settings.items()}


def differing(then: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """Return in words which settings differ, by their digests then and now.

    >>> differing(digests_of({"seed": 1, "tool": "a"}), digests_of({"seed": 2, "tool": "b"}))
    'another seed and another version of dpveil'
    """
    names = [name for name in WORDS if then.get(name) != now.get(name)]
    if "clip" in names and "plan" in names:
        names.remove("plan")  # one of another clip is always another
    return " and ".join(WORDS[name] for name in names) or OTHERS
