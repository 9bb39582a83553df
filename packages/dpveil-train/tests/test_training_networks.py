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

from dpveil.codecs import GAN
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
        (gan.Decoder(small), (small.length,)),
        (upconv.Generator(upconv.TINY), codes),
        (stylegan.Encoder(stylegan.TINY), picture),
        (stylegan.Synthesis(stylegan.TINY), (stylegan.TINY.length,)),
        (denoiser.UNet(denoiser.TINY.widths), (3, 32, 32)),
    ]
    if not training:  # the thesis has batch statistics, which are constants once it is trained
        printed = replace(small, printed=True, critic=(8,))
        networks += [(gan.Encoder(printed), picture), (gan.Decoder(printed), (small.length,))]
    for network, shape in networks:
        batch = torch.randn(4, *shape)
        more = [torch.randn(4, 3)] if isinstance(network, gan.Decoder) else []
        with torch.no_grad():
            plain, changed = (
                network.train(training)(given, *more) for given in (batch, torch.cat([batch[:1], -batch[1:]]))
            )
        assert torch.equal(plain[0], changed[0])
        assert not torch.equal(plain[1], changed[1])


@pytest.mark.parametrize("name", HOMES)
def test_from_shards_to_a_file(name: str, tmp_path: Path) -> None:
    home, paths = HOMES[name], (shard(tmp_path / "faces.tar", 60),)
    whole = home.train(home.NetworkOrder(paths=paths, out=tmp_path / "whole.safetensors", plan=home.TINY))
    assert (whole.images, whole.failed) == (60, [])
    assert whole.model.card.metrics["images"] == 3
    assert whole.model.card.settings.get("people", upconv.TINY.people) == upconv.TINY.people
    assert type(whole.model).load(tmp_path / "whole.safetensors").digest == whole.model.digest


@pytest.mark.parametrize("name", HOMES)
def test_a_step_leaves_nothing_on_another_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "best", lambda: torch.device("meta"))
    monkeypatch.setattr(networks, "halves", lambda device: nullcontext())
    made = trainer(name)
    with pytest.raises(RuntimeError, match="meta tensors"):  # the losses, at the very end, have no values
        made.step()
    assert made.done == 1
    assert {one.device.type for one in made.mean.parameters()} == {"meta"}


@pytest.mark.filterwarnings("ignore")  # torch's own, while it compiles
@pytest.mark.parametrize("name", ["gan", "stylegan"])
def test_compiled_networks_learn_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a penalty differentiates gradients, which compiled calls refuse."""

    def compiled(device: torch.device, *networks: torch.nn.Module) -> None:
        for network in networks:
            network.compile(backend="aot_eager")

    plain = trainer(name)
    monkeypatch.setattr(networks, "compile_calls", compiled)
    fast = trainer(name)
    for _ in range(2):
        wanted, found = plain.step(), fast.step()
    assert found == pytest.approx(wanted, rel=0.05, abs=0.02)
    assert fast.state()["encoder"].keys() == plain.state()["encoder"].keys()


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


def kill_in_training(folder: Path, moment: str) -> int:
    """Train in a fork that kills itself: after the second step, in the middle of the third checkpoint, or
    before the first one takes its name. Return its exit code.
    """
    save, step, move = torch.save, Trainer.step, Path.replace

    def stepped(self: Trainer) -> dict[str, float]:
        out = step(self)
        if moment == "step" and self.done == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return out

    def saved(state: dict[str, Any], file: Any) -> None:
        save(state, file)
        if moment == "write" and state["done"] == 3:
            file.flush()
            file.truncate(file.tell() // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def moved(self: Path, to: Path) -> Path:
        if moment == "rename" and self.name.endswith(".checkpoint.new"):
            os.kill(os.getpid(), signal.SIGKILL)
        return move(self, to)

    child = os.fork()
    if not child:
        try:
            networks.OFTEN = -1.0  # type: ignore[misc]
            Trainer.step, torch.save, Path.replace = stepped, saved, moved
            train(NetworkOrder(paths=(folder / "faces.tar",), out=folder / "one.safetensors", plan=TINY))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


DONE = {"step": 1, "write": 2, "rename": 0}  # steps in the checkpoint that is left


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
    paths = (shard(tmp_path / "faces.tar", 60),)
    assert kill_in_training(tmp_path, moment) == -signal.SIGKILL
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
