"""The loop of every network: seeds, checkpoints, interrupts, kills and devices.

There is no CUDA device here, so tensors without data stand for one: operations that mix them with the
processor's fail, as they would there.
"""

from __future__ import annotations

import os
import signal
import sys
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from network_made import HOMES, shard, trainer, weights

from dpveil.errors import InvalidParameter, PhotoError
from dpveil_train import denoiser, gan, networks, stylegan, upconv
from dpveil_train.gan import TINY, Trainer, train
from dpveil_train.networks import NetworkOrder

torch.set_num_threads(1)  # a fork has one thread: it would wait for ever for others of OpenMP


@pytest.mark.parametrize("name", HOMES)
def test_a_training_that_was_taken_up_is_the_one_that_was_not_stopped(name: str, tmp_path: Path) -> None:
    whole, first, second = (trainer(name) for _ in range(3))
    for _ in range(4):
        whole.step()
    for _ in range(3):
        first.step()
    torch.save(first.state(), tmp_path / "state.pt")
    second.take_up(torch.load(tmp_path / "state.pt", weights_only=True))
    second.step()
    assert getattr(whole, "basis", whole) is not None
    for one, two in zip(weights(whole), weights(second), strict=True):
        assert (one == two).all()
    assert any((one != two).any() for one, two in zip(weights(whole), weights(first), strict=True))


@pytest.mark.parametrize("training", [True, False])
def test_pictures_of_a_batch_do_not_mix(training: bool) -> None:
    """With batch statistics the code of one person would change with who else is in the batch."""
    torch.manual_seed(0)
    small, codes = gan.TINY, (upconv.TINY.length + 2,)
    picture = (3, small.side, small.side)
    networks = [
        (gan.Encoder(small), picture),
        (gan.Decoder(small), (small.length + 3,)),
        (upconv.Generator(upconv.TINY), codes),
        (stylegan.Encoder(stylegan.TINY), picture),
        (stylegan.Synthesis(stylegan.TINY), (stylegan.TINY.length,)),
        (denoiser.UNet(denoiser.TINY.widths), (3, 32, 32)),
    ]
    if not training:  # the thesis has batch statistics, which are constants once it is trained
        printed = replace(small, printed=True, critic=(8,))
        networks += [(gan.Encoder(printed), picture), (gan.Decoder(printed), (small.length + 3,))]
    for network, shape in networks:
        batch = torch.randn(4, *shape)
        with torch.no_grad():
            plain, changed = (
                network.train(training)(given) for given in (batch, torch.cat([batch[:1], -batch[1:]]))
            )
        assert torch.equal(plain[0], changed[0])
        assert not torch.equal(plain[1], changed[1])


@pytest.mark.parametrize("name", HOMES)
def test_from_shards_to_a_file(name: str, tmp_path: Path) -> None:
    home, paths = HOMES[name], (shard(tmp_path / "faces.tar", 60),)
    whole = home.train(NetworkOrder(paths=paths, out=tmp_path / "whole.safetensors", plan=home.TINY))
    assert (whole.images, whole.failed) == (60, [])
    assert whole.model.card.metrics["images"] == 3
    assert whole.model.card.settings.get("people", upconv.TINY.people) == upconv.TINY.people
    assert type(whole.model).load(tmp_path / "whole.safetensors").digest == whole.model.digest


@pytest.mark.parametrize("name", HOMES)
def test_a_step_leaves_nothing_on_another_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks.Trainer, "device", torch.device("meta"))
    monkeypatch.setattr(networks.Trainer, "halves", nullcontext)
    made = trainer(name)
    with pytest.raises(RuntimeError, match="meta tensors"):  # the losses, at the very end, have no values
        made.step()
    assert made.done == 1
    assert {one.device.type for one in made.mean.parameters()} == {"meta"}


def test_checkpoints_of_anything_else_are_ignored_and_links_not_followed(tmp_path: Path) -> None:
    order = NetworkOrder(
        paths=(shard(tmp_path / "faces.tar", 60),), out=tmp_path / "one.safetensors", plan=TINY
    )
    kept = tmp_path / ".one.safetensors.checkpoint"
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for state in (b"PK\x03\x04 nothing", [1, 2], torch.zeros(3), {"key": torch.zeros(3)}, {"done": 1}):
        kept.write_bytes(state) if isinstance(state, bytes) else torch.save(state, kept)
        Path(f"{kept}.new").symlink_to(precious)
        assert train(order).model.length == TINY.length
        assert precious.read_text() == "precious"
        for made in tmp_path.glob("one*"):
            made.unlink()


def test_too_few_faces_and_shards_without_labels_are_refused(tmp_path: Path) -> None:
    few = NetworkOrder(paths=(shard(tmp_path / "few.tar", 20),), out=tmp_path / "few.safetensors", plan=TINY)
    with pytest.raises(InvalidParameter, match="only 20"):
        train(few)
    empty = tmp_path / "empty.tar"
    tarfile.open(empty, "w").close()
    with pytest.raises(PhotoError, match="no pictures"):
        train(replace(few, paths=(empty,)))
    assert not list(tmp_path.glob("*.safetensors"))


def kill_in_training(folder: Path) -> int:
    """Train in a fork that kills itself while it writes the third checkpoint; return its exit code."""
    save = torch.save

    def saved(state: dict[str, Any], file: Any) -> None:
        save(state, file)
        if state["done"] == 3:
            file.flush()
            file.truncate(file.tell() // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        try:
            networks.OFTEN = -1.0  # type: ignore[misc]
            torch.save = saved
            train(NetworkOrder(paths=(folder / "faces.tar",), out=folder / "one.safetensors", plan=TINY))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_training_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = (shard(tmp_path / "faces.tar", 60),)
    whole = train(NetworkOrder(paths=paths, out=tmp_path / "whole.safetensors", plan=TINY)).model.tensors()
    assert kill_in_training(tmp_path) == -signal.SIGKILL
    assert not (tmp_path / "one.safetensors").exists()
    kept, steps, step = tmp_path / ".one.safetensors.checkpoint", list[int](), Trainer.step
    assert torch.load(kept, weights_only=True)["done"] == 2
    monkeypatch.setattr(Trainer, "step", lambda self: (steps.append(self.done), step(self))[1])
    again = train(NetworkOrder(paths=paths, out=tmp_path / "one.safetensors", plan=TINY))
    assert steps[0] == 2
    assert again.model.tensors().keys() == whole.keys()
    for name, value in again.model.tensors().items():
        assert np.array_equal(value, whole[name]), name
    assert sorted(one.name for one in tmp_path.glob(".*")) == [], "no part of a checkpoint is left behind"
