"""Heads that are turned too far for the head's shape: the box around them is replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpveil
from dpveil.core.origin import Origin
from dpveil.core.region import Region
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.stated import misplaced

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


def test_a_head_s_shape_is_refused_where_the_box_is_due() -> None:
    for yaw, due in ((1, False), (2, True), (-2, True)):
        cell = Cell(44, 0, 18, 15, yaw)
        origin = Origin("face", "faces", number=1, found=True, cell=cell.numbers)
        box, mask = cell.shape("head").region(cell.pose, 400, 400)
        record = Region(box, mask, origin).record
        assert bool(misplaced(record, "head", "auto", 400, 400, counted=True)) == due
        around, _ = cell.shape("box").region(cell.pose, 400, 400, masked=False)
        whole = replace(record, box=around, masked=None)
        assert bool(misplaced(whole, "head", "auto", 400, 400, counted=True)) != due
