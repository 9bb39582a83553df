"""Training of the network that lights an inner face: its light, and where something else is seen.

    python lighting.py lfw_wide/*.tar --out FILE

It learns from photos of people in which faces are replaced as in a release: what it is told is what is seen
around a face, and the new face as its rim alone would light it; what it has to come near, at four scales, is
the photo. It joins the network of `surroundings.py` in the file of dpveil-faces. Needs dpveil-train.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

from dpveil.assets.network import Network
from dpveil.assets.store import default_path, save
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError
from dpveil.faces.attributes import Attributes
from dpveil.faces.geometry.head_frame import INNER, HeadFrame, between, pixel_grid
from dpveil.faces.geometry.view import seen
from dpveil.faces.heads import Heads
from dpveil.faces.recombine import recombine
from dpveil.faces.surroundings import LIGHTS, PLANES, SIDE, SurroundingsNetwork
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_train.crops import photos
from dpveil_train.networks import export_onnx, halve_weights

LEAST: Final = 40
"""Least side of UTKFace's crop of a face, in pixels."""
WIDTHS: Final = (16, 32, 48, 80)
"""Channels at a half, a quarter, an eighth and a sixteenth of the side."""
STEPS: Final = 2000
BATCH: Final = 32
RATE: Final = 2e-3
HELD_OUT: Final = 200
"""The first so many faces are held out."""
MOST, TINT, DARK = 0.6, 0.2, 12.0
"""Largest logarithms of the gain of all channels and of one, and levels added before it."""
CORE: Final = 0.2
"""Width of the edge of the part in which only the face is seen, in sizes of the inner face's shape."""
LEARNED, SHOWN = 0.6, 0.8
"""Enlargement of that shape to where that part reaches while the network learns, and afterwards."""
SEEN: Final = (0.1, 0.85)
"""Shares of a face below and above which nothing or only it is seen, afterwards."""
SMOOTH: Final = 1.3
"""Standard deviation of a blur of gains, afterwards, in eighths of the side. A network that learns with these
three finds other ways to paint mouths and brows of others, which are nearer to photos and look worse."""
SCALES: Final = (0.5, 0.8, 1.0, 1.0)
"""Weights of the errors at each pixel, and of means of 2 × 2, 4 × 4 and 8 × 8."""
OPPONENT: Final = ((1 / 3, 1 / 3, 1 / 3), (0.9, -0.9, 0.0), (0.45, 0.45, -0.9))
"""Lightness and two differences of colours, in which errors count."""
Planes = UInt8[np.ndarray, "10 s s"]


class Recorder:
    """Stands in for the network, and keeps what it would be given."""

    def __init__(self, network: SurroundingsNetwork) -> None:
        self.network, self.planes = network, list[Float32[np.ndarray, "s s 10"]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def light(self, planes: Float32[np.ndarray, "s s 10"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keep the planes, and change nothing."""
        self.planes.append(planes)
        none = np.zeros((SIDE, SIDE, 3), np.float32)
        return none, np.ones((SIDE, SIDE), np.float32), none


def examples(paths: Sequence[Path]) -> Iterator[tuple[Planes, Planes]]:
    """Yield what the network is given of each face, and the photo there with what counts of it."""
    method, finder = Attributes(), Faces()
    for number, photo in enumerate(photos(paths)):
        if not isinstance(photo, Photo):
            continue
        try:
            heads = Heads(photo, finder.find(photo), method)
        except DPVeilError:
            continue
        crops = np.stack([method.blank_crop for _ in heads.places])
        faces = method.views(crops, bits=SeededBits(number))(None)
        for place, face in zip(heads.places, faces, strict=True):
            whole = between(place.pose, place.frame, HeadFrame(1))
            if HeadFrame(1).unit / whole.scale < LEAST or face.model is None:
                continue
            recorder = Recorder(face.model)
            recombine(photo.image, [place], [replace(face, model=recorder)], turned=True)
            there = between(whole, HeadFrame(1), HeadFrame(SIDE))
            true, within = seen(photo.image, np.zeros(photo.image.shape[:2], np.bool_), there, SIDE)
            (given,) = recorder.planes
            yield levels(given.transpose(2, 0, 1) * 127.5 + 127.5), levels(np.dstack([true, 255.0 * within]))


def levels(values: np.ndarray) -> UInt8[np.ndarray, ...]:
    """Return values rounded to bytes."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


class Block(nn.Module):
    """Two convolutions beside a shorter way."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.c2, self.n2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        same = before == after and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both ways."""
        return torch.relu(self.n2(self.c2(torch.relu(self.n1(self.c1(x))))) + self.skip(x))


class Lighting(nn.Module):
    """A U-Net. In its `last` form gains are smooth, so that features stay the new face's own."""

    def __init__(self, *, last: bool = False) -> None:
        super().__init__()
        self.last = last
        a, b, c, d = WIDTHS
        along = torch.linspace(-1, 1, SIDE)
        self.register_buffer("at", torch.stack(torch.meshgrid(along, along, indexing="ij"))[None])
        core = np.clip((INNER.far(pixel_grid(SIDE)) - (SHOWN if last else LEARNED)) / CORE, 0, 1)
        self.register_buffer("core", torch.from_numpy(core).float(), persistent=False)
        one = torch.exp(-0.5 * (torch.arange(-2.0, 3.0) / SMOOTH) ** 2)
        self.register_buffer(
            "smooth", (one[:, None] * one / one.sum() ** 2).expand(3, 1, 5, 5).clone(), False
        )
        self.stem = nn.Sequential(nn.Conv2d(12, a, 4, 2, 1, bias=False), nn.BatchNorm2d(a), nn.ReLU())
        self.d1, self.d2, self.d3 = Block(a, b, 2), Block(b, c, 2), Block(c, d, 2)
        self.mid, self.glob = Block(d, d), nn.Linear(d, d)
        self.u2, self.u1, self.u0 = Block(d + c, c), Block(c + b, b), Block(b + a, a)
        self.fine = nn.Sequential(nn.Conv2d(a + 12, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.gain, self.out = nn.Conv2d(c, 3, 3, 1, 1), nn.Conv2d(16, 4, 3, 1, 1)
        for layer in (self.gain, self.out):
            nn.init.normal_(layer.weight, std=1e-3)
            nn.init.zeros_(layer.bias)

    def forward(self, planes: Tensor) -> Tensor:
        """Return the logarithm of the gain, the share of the face, and the levels of what is beside it."""
        x = torch.cat([planes, self.at.expand(len(planes), 2, SIDE, SIDE)], dim=1)
        a = self.stem(x)
        b = self.d1(a)
        c = self.d2(b)
        d = self.mid(self.d3(c))
        d = d + self.glob(d.mean((2, 3)))[..., None, None]
        c = self.u2(torch.cat([enlarged(d, 2), c], 1))
        b = self.u1(torch.cat([enlarged(c, 2), b], 1))
        a = self.u0(torch.cat([enlarged(b, 2), a], 1))
        gain = self.gain(c)
        if self.last:
            gain = conv2d(pad(gain, (2, 2, 2, 2), mode="replicate"), self.smooth, groups=3)
        gain, more = enlarged(gain, 8), self.out(self.fine(torch.cat([enlarged(a, 2), x], 1)))
        mean = gain.mean(1, keepdim=True)
        gain = MOST * torch.tanh(mean / MOST) + TINT * torch.tanh((gain - mean) / TINT)
        share = 1 - self.core * (1 - torch.sigmoid(more[:, :1] * 2 + 3))
        if self.last:
            share = ((share - SEEN[0]) / (SEEN[1] - SEEN[0])).clamp(0, 1)
        return torch.cat([gain, share, torch.sigmoid(more[:, 1:] * 2) * 255], 1)


def enlarged(planes: Tensor, factor: int) -> Tensor:
    """Return planes at a multiple of their side."""
    return interpolate(planes, scale_factor=float(factor), mode="bilinear", align_corners=False)


def varied(planes: Tensor, true: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return examples mirrored or not, in other light, and some of them without colour."""
    if rng.random() < 0.5:
        planes, true = planes.flip(-1), true.flip(-1)

    def drawn(all_channels: float, one: float) -> Tensor:
        sizes = (len(planes), 1, 1, 1), (len(planes), 3, 1, 1)
        both = rng.normal(0, all_channels, sizes[0]) + rng.normal(0, one, sizes[1])
        return torch.from_numpy(both).float()

    some = torch.from_numpy(rng.random((len(planes), 1, 1, 1)) < 0.6)
    light = torch.where(some, drawn(0.2, 0.07), torch.zeros(1)).exp()
    photo = (planes[:, :3] * light).clamp(0, 255)
    face = (planes[:, 5:8] * light * drawn(0.06, 0.02).exp()).clamp(0, 255)
    colours = torch.stack([photo, face, (true[:, :3] * light).clamp(0, 255)])
    grey = torch.from_numpy(rng.random((len(planes), 1, 1, 1)) < 0.05)
    photo, face, wanted = torch.where(grey, colours.mean(2, keepdim=True), colours)
    return torch.cat([photo, planes[:, 3:5], face, planes[:, 8:]], 1), torch.cat([wanted, true[:, 3:]], 1)


def loss_of(network: Lighting, planes: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of bytes of `examples`, and the mean absolute error in levels; near the rim both count
    four times.
    """
    known, face, weight = planes[:, 3:4] / 255, planes[:, 5:8], true[:, 3:]
    scaled = torch.cat([(planes[:, :3] / 127.5 - 1) * known, known, planes[:, 4:5] / 255], 1)
    made = network(torch.cat([scaled, planes[:, 5:] / 127.5 - 1], 1))
    lit = ((face + DARK) * made[:, :3].exp() - DARK).clamp(0, 255)
    share = made[:, 3:4]
    missed = share * lit + (1 - share) * made[:, 4:] - true[:, :3]
    apart = torch.einsum("ij,njhw->nihw", torch.tensor(OPPONENT), missed / 64)
    both, loss = torch.cat([apart * weight, weight], 1), torch.zeros(())
    for scale in SCALES:
        error, count = both[:, :3] / both[:, 3:].clamp(min=1e-3), both[:, 3:]
        loss = loss + scale * ((error**2 + 1e-3).sqrt() * count).sum() / count.sum() / 3
        both = avg_pool2d(both, 2)
    loss = loss / sum(SCALES) + (weight * (1 - share) * (0.03 * share + 0.01)).sum() / weight.sum()
    return loss, (missed.abs() * weight).sum() / weight.sum() / 3


def weights(planes: Planes, true: Planes) -> Float32[np.ndarray, "s s"]:
    """Return how much each pixel of a region counts."""
    hole = (planes[3] < 255).astype(np.uint8)
    region = cv2.dilate((planes[4] > 0).astype(np.uint8), np.ones((5, 5), np.uint8)) * hole
    deep = cv2.distanceTransform(hole, cv2.DIST_L2, 3)
    return np.asarray(region * (true[3] > 0) * (1 + 3 * np.exp(-deep / 3)), np.float32)


def fit(paths: Sequence[Path], seed: int) -> tuple[Lighting, dict[str, float]]:
    """Return the trained network, and its figures."""
    torch.manual_seed(seed)
    rng, network = np.random.default_rng(seed), Lighting()
    pairs = [(a, np.concatenate([b[:3], levels(b[3:])])) for a, b in examples(paths)]
    counted = [weights(a, b) for a, b in pairs]
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-4)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS, pct_start=0.1)

    def batch(rows: np.ndarray) -> tuple[Tensor, Tensor]:
        planes = torch.from_numpy(np.stack([pairs[row][0] for row in rows])).float()
        true = np.stack([np.concatenate([pairs[row][1][:3], counted[row][None]]) for row in rows])
        return planes, torch.from_numpy(true.astype(np.float32))

    for step in range(STEPS):
        loss, _ = loss_of(network, *varied(*batch(rng.integers(HELD_OUT, len(pairs), BATCH)), rng))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        plan.step()
        if step % 100 == 99:
            print(step + 1, f"{loss.item():.4f}", flush=True)
    last = Lighting(last=True)
    last.load_state_dict(network.state_dict())
    last.eval()
    with torch.no_grad():
        errors = [loss_of(last, *batch(np.arange(at, at + 50)))[1].item() for at in range(0, HELD_OUT, 50)]
    learned = len(pairs) - HELD_OUT
    error = round(float(np.mean(errors)), 1)
    return last, {"faces whose light was learned": learned, "mean error of light, in levels": error}


def main() -> None:
    """Train the network, and write it with that of `surroundings.py` and the card of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    network, figures = fit(args.photos, args.seed)
    made = Network(halve_weights(export_onnx(network, PLANES[0])), *PLANES, LIGHTS)
    made.check(255.0)
    both = SurroundingsNetwork.load(default_path("surroundings"))
    card = replace(both.card, metrics={**both.card.metrics, **figures})
    print(save(replace(both, lighting=made, card=card), args.out, replace=True))


if __name__ == "__main__":
    main()
