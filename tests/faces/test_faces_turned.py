"""Heads that are turned too far for the head's shape: the box around them is replaced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpveil

PROFILE = "lfw10_250/Muhammad_Ali/Muhammad_Ali_0001.jpg"
HEAD = (slice(20, 170), slice(72, 208))
"""Where his hair and ear are, which reach far beyond what landmarks tell."""


def test_of_a_profile_the_box_around_the_head_is_replaced(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("dpveil_faces")
    plan = dpveil.plan(shared / PROFILE, protect="head")
    [region] = plan.regions
    hidden = np.zeros((250, 250), bool)
    hidden[region.box.slices] = True if region.mask is None else region.mask
    assert hidden[HEAD].all()
    assert any("turned far" in str(note) for note in plan.warnings)
    path, _ = plan.release().save(tmp_path / "a.png")
    assert dpveil.verify(path).status == "consistent"
