"""Networks that run in a process of their own: whatever that does, this one goes on with the same results."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from dpveil.assets import network_process
from dpveil.assets.network_process import Confined, detect
from dpveil.errors import DPVeilError, ModelError
from dpveil.regions.detectors.table import YuNet
from tiny_onnx import yunet

IMAGE = np.zeros((64, 64, 3), np.uint8)
IMAGE[40:48, 32:40, 2] = 204
SETTINGS = np.array([0.5, 0.3])
DEADLY = {32: 67, 1374: 255}
"""Bytes, by place, with which OpenCV 4.13 ends the process that reads the network."""


def test_it_gives_what_this_process_would_and_outlives_its_child() -> None:
    network = Confined("yunet", yunet())
    here = detect(yunet(), IMAGE, SETTINGS)
    assert len(here) == 1
    assert (network(IMAGE, SETTINGS) == here).all()
    [(_, child)] = network.pool._idle
    assert (network(0 * IMAGE, SETTINGS)).shape == (0, 15)
    assert [one for _, one in network.pool._idle] == [child]
    with pytest.raises(ModelError, match="does not run"):
        network(IMAGE[:0], SETTINGS)
    child.process.kill()
    child.process.wait()
    assert (network(IMAGE, SETTINGS) == here).all()
    assert (pickle.loads(pickle.dumps(network))(IMAGE, SETTINGS) == here).all()  # noqa: S301


def test_a_file_that_ends_its_reader_is_refused(tmp_path: Path) -> None:
    changed = bytearray(yunet())
    for place, byte in DEADLY.items():
        changed[place] = byte
    (tmp_path / "net.onnx").write_bytes(changed)
    with pytest.raises(DPVeilError) as refusal:
        YuNet(tmp_path / "net.onnx")
    assert "\n" not in str(refusal.value)


def test_what_a_network_gives_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_process, "MOST_FOUND", 15 * 8 - 1)
    with pytest.raises(ModelError, match="ends the process"):
        Confined("yunet", yunet())(IMAGE, SETTINGS)
