"""Trainings off the processor. There is no CUDA device here, so tensors without data stand for one.

Operations that mix them with the processor's fail, as they would there.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from dpveil_train import devices
from dpveil_train.denoiser import orders as denoiser
from dpveil_train.generators import trainer as gan
from dpveil_train.generators.plan import TINY as GAN_PLAN
from dpveil_train.stylegan import trainer as stylegan
from dpveil_train.stylegan.plan import TINY as STYLEGAN_PLAN
from dpveil_train.upconv import trainer as upconv
from dpveil_train.upconv.plan import TINY as UPCONV_PLAN

HOMES = {"gan": gan, "stylegan": stylegan, "upconv": upconv, "denoiser": denoiser}


def made(name: str, count: int = 60) -> Any:
    rng = np.random.default_rng(0)
    plans = {"gan": GAN_PLAN, "stylegan": STYLEGAN_PLAN, "upconv": UPCONV_PLAN, "denoiser": denoiser.TINY}
    side = plans[name].side
    crops = rng.integers(0, 256, (count, side, side, 3), np.uint8)
    conditions = rng.normal(0, 0.2, (count, 2 if name == "upconv" else 3)).astype(np.float32)
    conditions[:, 0] = np.where(conditions[:, 0] > 0, 1, -1)
    given = () if name == "denoiser" else (conditions,)
    return HOMES[name].Trainer(plans[name], crops, *given)


@pytest.mark.parametrize("name", HOMES)
def test_a_step_leaves_nothing_on_another_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOMES[name], "best", lambda: torch.device("meta"))
    monkeypatch.setattr(HOMES[name], "halves", lambda device: nullcontext())
    trainer = made(name)
    with pytest.raises(RuntimeError, match="meta tensors"):  # the losses, at the very end, have no values
        trainer.step()
    assert trainer.done == 1
    assert {one.device.type for one in trainer.mean.parameters()} == {"meta"}


@pytest.mark.filterwarnings("ignore")  # torch's own, while it compiles
@pytest.mark.parametrize("name", ["gan", "stylegan"])
def test_compiled_networks_learn_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a penalty differentiates gradients, which compiled calls refuse."""

    def compiled(device: torch.device, *networks: torch.nn.Module) -> None:
        for network in networks:
            network.compile(backend="aot_eager")

    plain = made(name)
    monkeypatch.setattr(HOMES[name], "compiled", compiled)
    fast = made(name)
    for _ in range(2):
        wanted, found = plain.step(), fast.step()
    assert found == pytest.approx(wanted, rel=0.05, abs=0.02)
    assert fast.state()["encoder"].keys() == plain.state()["encoder"].keys()


def test_the_processor_is_not_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(torch.nn.Linear, "compile", lambda self: called.append(self))
    network = torch.nn.Linear(1, 1)
    devices.compiled(torch.device("cpu"), network)
    assert called == []
    devices.compiled(torch.device("cuda"), network)
    assert called == [network]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices.best().type == "cuda"
