"""Training of the network that lights an inner face, and paints what is beside it.

    python lighting.py lfw_wide/*.tar --out FILE

It learns from photos of people in which faces are replaced as in a release: what it is told is what is seen
around a face, how that would go on, and the new face as its rim alone would light it; what it has to come
near is the photo. It joins the network of `surroundings.py` in the file of dpveil-faces. Needs dpveil-train.
A second network that tells photos from what is painted (Isola et al. 2017) was tried: one that sees much asks
for mouths and brows of others around the face, and one that sees 16 pixels changes little. The weights of
dpveil-faces went through several such runs, each from the weights before, one of them with the latter.
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

from dpveil.assets.networks import Network
from dpveil.assets.trained_files import default_path, save
from dpveil.core.photo import Photo
from dpveil.errors import DPVeilError
from dpveil.faces.attributes_method import Attributes
from dpveil.faces.geometry import light
from dpveil.faces.geometry.head_frame import HeadFrame, Shape, between, pixel_grid
from dpveil.faces.geometry.head_picture import seen
from dpveil.faces.head_placement import HeadPlacement, without_their_chroma
from dpveil.faces.paint_faces import paint_faces, shown_place
from dpveil.faces.surroundings_network import FINE, LIGHTS, PLANES, SurroundingsNetwork
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_train.crops import photos
from dpveil_train.networks import export_onnx, halve_weights

LEAST: Final = 16  # least side of UTKFace's crop of a face, in pixels
WHOLE: Final = 0.75, 0.5, 2500
"""Least share of a region within the photo, largest share of the planes that is hidden, and least pixels of a
region in them: other faces teach nothing."""
WIDTHS: Final = (16, 32, 48, 80)  # channels at a half, a quarter, an eighth and a sixteenth of the side
STEPS: Final = 3000
BATCH: Final = 16
RATE: Final = 1.5e-3
HELD_OUT: Final = 160  # so many faces are held out
MOST, EVEN, DARK = (0.6, 0.2), (0.3, 0.08), 12.0
"""Largest logarithms of the mean gain of all channels and of one, the same of what differs from that mean
across the face, and levels added before it."""
HEART: Final = 0.18, 0.22  # half axes of the part of a face in which that mean is taken
CORE: Final = Shape((0.145, 0.13), below=2.2)
"""In it, to the end of the chin, only the new face is seen: a network that may, paints mouths of others.
Pixels beyond it count; within it, only means do."""
SOFT: Final = 0.12  # width of the edge of that shape, in its sizes
SMOOTH: Final = 2.0  # standard deviation of a blur of gains, in eighths of the side
SCALES: Final = (0.5, 0.8, 1.0, 1.0)
"""Weights of the errors at each pixel, and of means of 2 × 2, 4 × 4 and 8 × 8."""
INNERMOST: Final = 2  # scale from which on errors count everywhere
OPPONENT: Final = ((1 / 3, 1 / 3, 1 / 3), (0.9, -0.9, 0.0), (0.45, 0.45, -0.9))
"""Lightness and two differences of colours, in which errors count."""
FAR: Final = torch.from_numpy(CORE.far((pixel_grid(light.FINE.size))[light.CROP.slices])).float()[None, None]
"""By how much that shape is enlarged to reach each pixel."""
Planes = UInt8[np.ndarray, "c s s"]


class Recorder:
    """Stands in for the network, and keeps what it would be given."""

    def __init__(self, network: SurroundingsNetwork) -> None:
        self.network, self.planes = network, list[Float32[np.ndarray, "s s 13"]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def light(self, planes: Float32[np.ndarray, "s s 13"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keep the planes, and change nothing."""
        self.planes.append(planes)
        none = np.zeros((FINE, FINE, 3), np.float32)
        return none, np.ones((FINE, FINE), np.float32), none


def examples(paths: Sequence[Path]) -> Iterator[tuple[Planes, Planes]]:
    """Yield what the network is given of each face, and the photo there with what counts of it."""
    method, finder = Attributes(), Faces(margin=0)
    for number, photo in enumerate(photos(paths)):
        if not isinstance(photo, Photo):
            continue
        try:
            heads = HeadPlacement(photo, finder(photo), method)
        except DPVeilError:
            continue
        crops = np.stack([method.blank_crop for _ in heads.places])
        outside = without_their_chroma(photo, [one.region for one in heads.places]).image
        faces = method.views(crops, bits=SeededBits(number))(None)
        for found, face in zip(heads.places, faces, strict=True):
            place = replace(found, landmarks=None, exact=None)  # as in a release
            whole = shown_place(place)
            if HeadFrame(1).unit / whole.scale < LEAST or face.model is None:
                continue
            recorder = Recorder(face.model)
            paint_faces(outside, [place], [replace(face, model=recorder)], turned=True)
            if not recorder.planes:  # it is not shown
                continue
            there = between(whole, HeadFrame(1), light.FINE)
            there = replace(there, x=there.x - light.CROP.x, y=there.y - light.CROP.y)
            true, within = seen(photo.image, np.zeros(photo.image.shape[:2], np.bool_), there, FINE)
            (given,) = recorder.planes
            both = np.dstack([true, 255.0 * within]).transpose(2, 0, 1)
            yield levels(given.transpose(2, 0, 1) * 127.5 + 127.5), levels(both)


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
    """A U-Net from planes, as `SurroundingsNetwork.light` describes them, to what is shown there."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d = WIDTHS
        along = torch.linspace(-1, 1, FINE)
        self.register_buffer("at", torch.stack(torch.meshgrid(along, along, indexing="ij"))[None])
        across, down = (
            self.at[0, axis, ::8, ::8] / 2 / half for axis, half in zip((1, 0), HEART, strict=True)
        )
        heart = torch.exp(-(across**2) - down**2)
        self.register_buffer("heart", heart / heart.sum(), persistent=False)
        self.register_buffer("core", ((FAR - 1) / SOFT).clamp(0, 1), persistent=False)
        one = torch.exp(-0.5 * (torch.arange(-4.0, 5.0) / SMOOTH) ** 2)
        smooth = one[:, None] * one / one.sum() ** 2
        self.register_buffer("smooth", smooth.expand(3, 1, 9, 9).clone(), persistent=False)
        self.stem = nn.Sequential(nn.Conv2d(15, a, 4, 2, 1, bias=False), nn.BatchNorm2d(a), nn.ReLU())
        self.d1, self.d2, self.d3 = Block(a, b, 2), Block(b, c, 2), Block(c, d, 2)
        self.mid, self.glob = Block(d, d), nn.Linear(d, d)
        self.u2, self.u1, self.u0 = Block(d + c, c), Block(c + b, b), Block(b + a, a)
        self.fine = nn.Sequential(nn.Conv2d(a + 15, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.gain, self.out = nn.Conv2d(c, 3, 3, 1, 1), nn.Conv2d(16, 4, 3, 1, 1)
        for layer in (self.gain, self.out):
            nn.init.normal_(layer.weight, std=1e-3)
            nn.init.zeros_(layer.bias)

    def forward(self, planes: Tensor) -> Tensor:
        """Return the logarithm of the gain, the share of the face, and the levels of what is beside it."""
        x = torch.cat([planes, self.at.expand(len(planes), 2, FINE, FINE)], dim=1)
        a = self.stem(x)
        b = self.d1(a)
        c = self.d2(b)
        d = self.mid(self.d3(c))
        d = d + self.glob(d.mean((2, 3)))[..., None, None]
        c = self.u2(torch.cat([enlarged(d, 2), c], 1))
        b = self.u1(torch.cat([enlarged(c, 2), b], 1))
        a = self.u0(torch.cat([enlarged(b, 2), a], 1))
        gain = conv2d(pad(self.gain(c), (4, 4, 4, 4), mode="replicate"), self.smooth, groups=3)
        middle = (gain * self.heart).sum((2, 3), keepdim=True)
        gain = enlarged(bounded(middle, *MOST) + bounded(gain - middle, *EVEN), 8)
        more = self.out(self.fine(torch.cat([enlarged(a, 2), x], 1)))
        share = 1 - self.core * (1 - torch.sigmoid(more[:, :1] * 2 + 1))
        beside = (planes[:, 10:] + torch.tanh(more[:, 1:])) * 127.5 + 127.5
        return torch.cat([gain, share, beside.clamp(0, 255)], 1)


def bounded(gain: Tensor, all_channels: float, one: float) -> Tensor:
    """Return logarithms of a gain within bounds for the mean of channels, and for one beside it."""
    mean = gain.mean(1, keepdim=True)
    return all_channels * torch.tanh(mean / all_channels) + one * torch.tanh((gain - mean) / one)


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
    lit = torch.where(some, drawn(0.2, 0.07), torch.zeros(1)).exp()
    own = lit * drawn(0.06, 0.02).exp()
    pairs = (planes[:, :3], lit), (planes[:, 5:8], own), (true[:, :3], lit), (planes[:, 10:], lit)
    colours = torch.stack([(levels * gain).clamp(0, 255) for levels, gain in pairs])
    grey = torch.from_numpy(rng.random((len(planes), 1, 1, 1)) < 0.05)
    photo, face, wanted, filled = torch.where(grey, colours.mean(2, keepdim=True), colours)
    given = torch.cat([photo, planes[:, 3:5], face, planes[:, 8:10], filled], 1)
    return given, torch.cat([wanted, true[:, 3:]], 1)


def shown(network: Lighting, planes: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the network shows of bytes of `examples`, in levels, and the share of the face."""
    known, region, face = (planes[:, 3:4] > 200).float(), (planes[:, 4:5] > 200).float(), planes[:, 5:8]
    scaled = torch.cat([(planes[:, :3] / 127.5 - 1) * known, known, region], 1)
    made = network(torch.cat([scaled, planes[:, 5:] / 127.5 - 1], 1))
    lit = ((face + DARK) * made[:, :3].exp() - DARK).clamp(0, 255)
    share = made[:, 3:4]
    return share * lit + (1 - share) * made[:, 4:], share


def error_of(picture: Tensor, share: Tensor, true: Tensor) -> Tensor:
    """Return how far a picture is from the photo; near the rim both count four times."""
    weight, edge = true[:, 3:], (FAR > 1).float()
    missed = torch.einsum("ij,njhw->nihw", torch.tensor(OPPONENT), (picture - true[:, :3]) / 64)
    loss = torch.zeros(())
    for number, scale in enumerate(SCALES):
        counted = weight if number >= INNERMOST else weight * edge
        error, count = missed * counted, counted
        if number:
            error, count = avg_pool2d(error, 2**number), avg_pool2d(count, 2**number)
        error = error / count.clamp(min=1e-3)
        loss = loss + scale * ((error**2 + 1e-3).sqrt() * count).sum() / count.sum() / 3
    return loss / sum(SCALES) + (weight * (1 - share) * (0.06 * share + 0.03)).sum() / weight.sum()


def weights(planes: Planes, within: Planes) -> Float32[np.ndarray, "s s"] | None:
    """Return how much each pixel of a region counts; None if the region teaches nothing."""
    hole, region = (planes[3] < 255).astype(np.uint8), planes[4] > 200
    least, most, pixels = WHOLE
    if region.sum() < pixels or hole.mean() > most or (within[region] > 250).mean() < least:
        return None
    wide = cv2.dilate(region.astype(np.uint8), np.ones((5, 5), np.uint8)) * hole
    deep = cv2.distanceTransform(hole, cv2.DIST_L2, 3)
    return np.asarray(wide * (within > 127) * (1 + 3 * np.exp(-deep / 4)), np.float32)


def fit(paths: Sequence[Path], seed: int) -> tuple[Lighting, dict[str, float]]:
    """Return the trained network, and its figures."""
    torch.manual_seed(seed)
    rng, network = np.random.default_rng(seed), Lighting()
    pairs = []
    for planes, true in examples(paths):
        counted = weights(planes, true[3])
        if counted is not None:
            pairs.append((planes, np.concatenate([true[:3], counted[None]]).astype(np.float16)))
    optimiser = torch.optim.Adam(network.parameters(), RATE, betas=(0.5, 0.99))
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS, pct_start=0.1)

    def batch(rows: np.ndarray) -> tuple[Tensor, Tensor]:
        given, true = (np.stack([pairs[row][which] for row in rows]) for which in (0, 1))
        return torch.from_numpy(given).float(), torch.from_numpy(true).float()

    for step in range(STEPS):
        planes, true = varied(*batch(rng.integers(HELD_OUT, len(pairs), BATCH)), rng)
        picture, share = shown(network, planes)
        loss = error_of(picture, share, true)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        plan.step()
        if step % 100 == 99:
            print(step + 1, f"{loss.item():.4f}", flush=True)
    network.eval()
    missed, counts = 0.0, 0.0
    with torch.no_grad():
        for at in range(0, HELD_OUT, BATCH):
            planes, true = batch(np.arange(at, at + BATCH))
            picture, _ = shown(network, planes)
            missed += ((picture - true[:, :3]).abs() * true[:, 3:]).sum().item() / 3
            counts += true[:, 3:].sum().item()
    learned, error = len(pairs) - HELD_OUT, round(missed / counts, 1)
    return network, {"faces whose light was learned": learned, "mean error of light, in levels": error}


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
