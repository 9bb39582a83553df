"""An optimisation encoder: codes are refined until the generator draws given crops (Li & Clifton §3.1).

    python -m dpveil_train.projection model.pt FACES... --out codes.npz

model.pt is what `dpveil train stylegan` leaves beside the model. The paper starts at a random code and
compares features of VGG16; here codes start where the encoder puts them, and features are those of the
training's own critic. No release needs this: it takes torch, and seconds for each face.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from dpveil.codecs.neural import pictures, shown
from dpveil.errors import DPVeilError, ModelError
from dpveil.faces.portrait import centred
from dpveil.io import read
from dpveil.io.names import shown as named
from dpveil.metrics import psnr
from dpveil_train.stylegan import Critic, Encoder, Plan, Synthesis

STEPS: Final = 200
"""Steps of gradient descent."""
RATE: Final = 0.02
"""Learning rate of Adam, in units of W+."""
LEVELS: Final = 1.0
"""Weight of the squared error of levels beside that of features."""


class Networks(NamedTuple):
    """What a training leaves for torch."""

    plan: Plan
    encoder: Encoder
    synthesis: Synthesis
    critic: Critic


def read_networks(path: Path) -> Networks:
    """Return the networks that a training left; raises `ModelError` for any other file."""
    try:
        held: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        sizes: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in held["plan"].items()}
        plan = Plan(**sizes)
        made = Networks(plan, Encoder(plan), Synthesis(plan), Critic(plan))
        for name in ("encoder", "synthesis", "critic"):
            part = getattr(made, name)
            part.load_state_dict(held[name])
            part.eval().requires_grad_(requires_grad=False)
    except Exception as error:  # torch and pickle raise errors of many kinds
        hint = "the .pt beside a model that dpveil train stylegan wrote"
        raise ModelError(f"{named(path)} holds no networks of a stylegan", hint=hint) from error
    return made


def refined(
    networks: Networks, seen: Tensor, codes: Tensor, *, steps: int = STEPS, rate: float = RATE
) -> Tensor:
    """Return W+ codes n × m that start at `codes` and minimise the error of features and levels.

    `seen` are pictures n × 3 × s × s as encoders see them. Faces do not mix: each has a loss of its own.
    """
    mask = torch.from_numpy(shown(networks.plan.side))
    _, wanted = networks.critic(seen)
    found = codes.detach().clone().requires_grad_()
    optimiser = torch.optim.Adam([found], lr=rate)
    for _ in range(steps):
        made = networks.synthesis(found) * mask
        _, features = networks.critic(made)
        apart = [(a - b).square().mean(dim=(1, 2, 3)) for a, b in zip(features, wanted, strict=True)]
        loss = torch.stack(apart).mean(dim=0) + LEVELS * (made - seen).square().mean(dim=(1, 2, 3))
        optimiser.zero_grad(set_to_none=True)
        loss.sum().backward()
        optimiser.step()
    return found.detach()


def compared(
    networks: Networks, crops: UInt8[np.ndarray, "n s s 3"], *, steps: int = STEPS
) -> tuple[np.ndarray, np.ndarray]:
    """Return refined codes, n × m, and PSNR in dB of the encoder's and of the refined codes, n × 2."""
    seen = torch.from_numpy(pictures(crops))
    with torch.no_grad():
        first = networks.encoder(seen)
    last = refined(networks, seen, first, steps=steps)
    return last.numpy(), np.stack([_psnr(networks, seen, codes) for codes in (first, last)], axis=1)


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def _psnr(networks: Networks, seen: Tensor, codes: Tensor) -> np.ndarray:
    made = networks.synthesis(codes) * torch.from_numpy(shown(networks.plan.side))
    pairs = zip(*((one.clamp(-1, 1).numpy() + 1) * 127.5 for one in (seen, made)), strict=True)
    return np.array([psnr(a.transpose(1, 2, 0), b.transpose(1, 2, 0), data_range=255) for a, b in pairs])


def main(words: Sequence[str] | None = None) -> int:
    """Refine the codes of the named faces, write them, print PSNR before and after; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dpveil_train.projection")
    parser.add_argument("networks", type=Path, help="the .pt beside a model")
    parser.add_argument("faces", type=Path, nargs="+", help="pictures, aligned as in training")
    parser.add_argument("--out", type=Path, required=True, help="codes of W+, a .npz")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args(words)
    try:
        networks = read_networks(given.networks)
        canvas = (networks.plan.side, networks.plan.side, 3)
        crops = np.stack([centred(read(path), canvas) for path in given.faces])
        codes, quality = compared(networks, crops, steps=given.steps)
        np.savez(given.out, codes=codes, psnr=quality)
    except (DPVeilError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 4
    for path, (before, after) in zip(given.faces, quality, strict=True):
        sys.stdout.write(f"{named(path)}  encoder {before:.2f} dB, refined {after:.2f} dB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
