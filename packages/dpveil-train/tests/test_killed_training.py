"""A training whose process is killed (SIGKILL) goes on as if it had not been."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_gan_training import shard

from dpveil.codecs import GAN
from dpveil_train.generators.orders import NetworkOrder, train
from dpveil_train.generators.plan import TINY
from dpveil_train.network_orders import peak_memory

KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from dpveil_train import network_orders
from dpveil.codecs import GAN
from dpveil_train.generators.orders import NetworkOrder, train
from dpveil_train.generators.plan import TINY
from dpveil_train.generators.trainer import Trainer

folder, moment = Path(sys.argv[1]), sys.argv[2]
network_orders.OFTEN = -1.0
save, step, move = torch.save, Trainer.step, Path.replace
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)

def stepped(self):
    out = step(self)
    if moment == "step" and self.done == 2:
        kill()
    return out

def saved(state, file):
    save(state, file)
    if moment == "write" and state["done"] == 3:
        file.flush()
        file.truncate(file.tell() // 2)
        kill()

def moved(self, to):
    if moment == "rename" and self.name.endswith(".checkpoint.new"):
        kill()
    return move(self, to)

Trainer.step, torch.save, Path.replace = stepped, saved, moved
train(NetworkOrder(paths=(folder / "faces.tar",), out=folder / "one.safetensors", plan=TINY))
"""
"""Trains, and kills itself: after the second step, in the middle of the third checkpoint, or before the first
one takes its name."""
DONE = {"step": 1, "write": 2, "rename": 0}
"""Steps in the checkpoint that is left."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> GAN:
    folder = tmp_path_factory.mktemp("whole")
    paths = (shard(folder / "faces.tar", 60),)
    return train(NetworkOrder(paths=paths, out=folder / "one.safetensors", plan=TINY)).model


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("moment", DONE)
def test_a_killed_training_goes_on_as_if_it_had_not_been(
    moment: str, trained: GAN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from dpveil_train.generators.trainer import Trainer

    paths = (shard(tmp_path / "faces.tar", 60),)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "one.safetensors").exists()
    kept, steps, step = tmp_path / ".one.safetensors.checkpoint", list[int](), Trainer.step
    left = torch.load(kept, weights_only=True)["done"] if kept.exists() else 0
    assert left == DONE[moment]
    monkeypatch.setattr(Trainer, "step", lambda self: (steps.append(self.done), step(self))[1])
    again = train(NetworkOrder(paths=paths, out=tmp_path / "one.safetensors", plan=TINY))
    assert steps[0] == left
    whole = trained.tensors()
    assert again.model.tensors().keys() == whole.keys()
    for name, value in again.model.tensors().items():
        assert np.array_equal(value, whole[name]), name
    assert sorted(one.name for one in tmp_path.glob(".*")) == [], "no part of a checkpoint is left behind"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_peak_memory_is_what_the_kernel_says(trained: GAN) -> None:
    """In a card, too; `VmHWM` is the high-water mark of the resident set, in KiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (most,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    peak = peak_memory()
    assert peak is not None
    assert abs(peak - most / 1024) < 16
    assert 100 < trained.card.settings["peak memory in MiB"] <= peak  # type: ignore[operator]
