"""What a detector of faces learns from releases: its mean average precision on originals it never saw.

The same small network (centres and sizes at a stride of 4 pixels, as CenterNet's) is trained from the same
start on mosaics of `PHOTOS` photos of LFW: the originals, and what each tool makes of them as JPEGs. Boxes
are those that CenterFace finds in the originals, as labels that go along with `--labels` would be. It is
measured on mosaics of originals of other people: AP over IoU 0.5 to 0.95, and at 0.5, as COCO's, of `RUNS`
trainings with other seeds. Needs torch; deface runs as in `folder.py`.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate, max_pool2d

from dpveil import read
from dpveil.regions import Faces
from folder import _deface
from folder_photos import SHARED
from timing import report

PHOTOS, TESTS, STEPS, BATCH, RUNS = 1000, 300, 800, 16, 1
SIDE, TILE, STRIDE = 160, 80, 4
IOUS = np.arange(0.5, 1.0, 0.05)
OWN = {
    "inner faces": [],
    "heads": ["--protect", "head"],
    "fill": ["--method", "fill", "--level", "127", "--regions", "faces"],
}
Set = tuple[list[np.ndarray], list[np.ndarray]]


def photos(work: Path) -> tuple[Path, Path]:
    """Write photos to train on, and of other people to measure on."""
    folders = work / "originals", work / "tests"
    for folder in folders:
        folder.mkdir()
    with tarfile.open(sorted(SHARED.with_name("lfw_wide").glob("*.tar"))[0]) as shard:
        members = [one for one in shard if one.name.endswith(".jpg")]
        with tarfile.open(sorted(SHARED.with_name("lfw_wide").glob("*.tar"))[1]) as more:
            for archive, names in ((shard, members), (more, [m for m in more if m.name.endswith(".jpg")])):
                for member in names[: PHOTOS // 2]:
                    file = archive.extractfile(member)
                    assert file is not None
                    (folders[0] / member.name).write_bytes(file.read())
    for path in sorted(SHARED.with_name("lfw10_250").glob("*/*.jpg"))[:: 1580 // TESTS][:TESTS]:
        shutil.copy(path, folders[1] / f"{path.parent.name}-{path.name}")
    return folders


def labels(folder: Path) -> dict[str, np.ndarray]:
    """Return the boxes of the faces of photos, n × 4: left, top, right and bottom."""
    finder, boxes = Faces(margin=0), dict[str, np.ndarray]()
    for path in sorted(folder.iterdir()):
        found = [one.box for one in finder.detect(read(path))]
        boxes[path.name] = np.array([(b.x, b.y, b.x + b.w, b.y + b.h) for b in found], float).reshape(-1, 4)
    return boxes


def made(originals: Path, work: Path) -> dict[str, Path]:
    """Return the folder of each tool's outputs, by its name."""
    folders = {"originals": originals}
    for name, options in OWN.items():
        folders[name] = work / name.replace(" ", "-")
        own = [str(Path(sysconfig.get_path("scripts")) / "dpveil"), "obfuscate", str(originals), "-q"]
        subprocess.run([*own, "--out", str(folders[name]), "--if-none", "copy", *options], check=False)
    if _deface():
        folders["deface"] = work / "deface"  # it writes beside its inputs
        shutil.copytree(originals, folders["deface"])
        subprocess.run([str(_deface()), str(folders["deface"])], check=True, capture_output=True)
        for path in folders["deface"].glob("*_anonymized*"):
            path.replace(path.with_name(path.name.replace("_anonymized", "")))
    return folders


def loaded(folder: Path, boxes: dict[str, np.ndarray]) -> Set:
    """Return the photos of a folder that exist, and their boxes."""
    names = [name for name in boxes if (folder / name).exists()]
    pictures = [np.asarray(Image.open(io.BytesIO((folder / n).read_bytes())).convert("RGB")) for n in names]
    return pictures, [boxes[name] for name in names]


def mosaic(of: Set, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return four photos side by side, each cut and scaled by chance, and the boxes that remain in it."""
    canvas, kept = np.zeros((SIDE, SIDE, 3), np.uint8), list[np.ndarray]()
    for row, column in np.ndindex(2, 2):
        at = int(draw.integers(len(of[0])))
        picture, boxes = of[0][at], of[1][at].copy()
        if draw.random() < 0.5:
            picture = picture[:, ::-1]
            boxes[:, [0, 2]] = picture.shape[1] - boxes[:, [2, 0]]
        side = int(draw.integers(TILE * 2, 250))
        left, top = draw.integers(0, 251 - side, 2)
        tile = Image.fromarray(picture[top : top + side, left : left + side])
        canvas[row * TILE :, column * TILE :][:TILE, :TILE] = tile.resize((TILE, TILE), Image.Resampling.BOX)
        cut = (boxes - [left, top, left, top]).clip(0, side)
        whole = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
        seen = np.prod(cut[:, 2:] - cut[:, :2], axis=1) > 0.6 * whole
        kept.append(cut[seen] * TILE / side + np.array([column, row, column, row]) * TILE)
    return canvas, np.concatenate(kept)


def targets(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the heat map of centres and, there, the offsets and logarithms of sizes."""
    size = SIDE // STRIDE
    heat, shape = np.zeros((size, size), np.float32), np.zeros((4, size, size), np.float32)
    down, across = np.mgrid[:size, :size]
    for left, top, right, bottom in boxes:
        x, y = (left + right) / 2 / STRIDE, (top + bottom) / 2 / STRIDE
        i, j = min(int(y), size - 1), min(int(x), size - 1)
        spread = max(0.7, (right - left) / STRIDE / 8)
        heat = np.maximum(heat, np.exp(-((down - i) ** 2 + (across - j) ** 2) / 2 / spread**2))
        heat[i, j] = 1
        shape[:, i, j] = x - j, y - i, np.log((right - left) / 16), np.log((bottom - top) / 16)
    return heat.astype(np.float32), shape


class Detector(nn.Module):
    """A small network: RGB pictures, n × 3 × s × s, to a heat map and shapes, n × 5 × s/4 × s/4."""

    def __init__(self) -> None:
        super().__init__()

        def layer(a: int, b: int, stride: int = 1) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())

        self.fine = nn.Sequential(layer(3, 16, 2), layer(16, 32, 2), layer(32, 32))
        self.coarse = nn.Sequential(layer(32, 48, 2), layer(48, 64, 2), layer(64, 64), layer(64, 32))
        self.last = nn.Sequential(layer(64, 48), nn.Conv2d(48, 5, 1))
        nn.init.constant_(self.last[1].bias, -2.0)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return logits of the heat map, and shapes."""
        fine = self.fine(pictures / 127.5 - 1)
        out: Tensor = self.last(torch.cat([fine, interpolate(self.coarse(fine), scale_factor=4.0)], dim=1))
        return out


def trained(of: Set, seed: int) -> Detector:
    """Return a detector that has learned from mosaics of photos."""
    torch.manual_seed(seed)
    draw, detector = np.random.default_rng(seed), Detector()
    optimiser = torch.optim.Adam(detector.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=STEPS)
    for _ in range(STEPS):
        drawn = [mosaic(of, draw) for _ in range(BATCH)]
        heat, shape = (
            torch.from_numpy(np.stack(p)) for p in zip(*(targets(b) for _, b in drawn), strict=True)
        )
        out = detector(torch.from_numpy(np.stack([p for p, _ in drawn])).permute(0, 3, 1, 2).float())
        centre = (heat == 1).float()
        focus = (torch.sigmoid(out[:, 0]) - heat).abs() ** 2 * (1 - heat) ** 2 * (1 - centre) + centre * (
            1 - torch.sigmoid(out[:, 0])
        ) ** 2
        each = binary_cross_entropy_with_logits(out[:, 0], centre, reduction="none") * focus
        apart = ((out[:, 1:] - shape).abs() * centre[:, None]).sum()
        loss = (each.sum() + 0.5 * apart) / centre.sum().clamp(min=1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return detector.eval()


@torch.no_grad()
def detections(detector: Detector, picture: np.ndarray) -> np.ndarray:
    """Return boxes with scores, n × 5, of the 30 highest maxima of the heat map."""
    out = detector(torch.from_numpy(picture)[None].permute(0, 3, 1, 2).float())[0]
    heat = torch.sigmoid(out[0])
    heat = heat * (max_pool2d(heat[None, None], 3, 1, 1)[0, 0] == heat)
    scores, at = heat.flatten().topk(30)
    i, j = (at // heat.shape[1]).numpy(), (at % heat.shape[1]).numpy()
    dx, dy, wide, tall = out[1:, i, j].numpy()
    x, y, w, h = (j + dx) * STRIDE, (i + dy) * STRIDE, 16 * np.exp(wide), 16 * np.exp(tall)
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2, scores.numpy()], axis=1)


def precision(detector: Detector, scenes: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the average precision at each of `IOUS`, over all scenes."""
    rows, total = list[tuple[float, np.ndarray]](), 0
    for picture, boxes in scenes:
        left, total = set(range(len(boxes))), total + len(boxes)
        for *box, score in detections(detector, picture):
            best = max(left, key=lambda k: overlap(np.array(box), boxes[k]), default=None)
            iou = 0.0 if best is None else overlap(np.array(box), boxes[best])
            if iou >= IOUS[0]:
                left.discard(best)  # type: ignore[arg-type]
            rows.append((float(score), iou >= IOUS))
    hits = np.array([row[1] for row in sorted(rows, key=lambda row: -row[0])], float)
    right = hits.cumsum(axis=0)
    precise = right / np.arange(1, len(hits) + 1)[:, None]
    precise = np.maximum.accumulate(precise[::-1], axis=0)[::-1]
    return np.asarray((precise * hits).sum(axis=0) / total)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the intersection of two boxes over their union."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    both = float(np.prod(sides.clip(0)))
    return both / float(np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - both)


def main() -> None:
    """Train a detector on each tool's outputs, and measure all on the same scenes."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    with tempfile.TemporaryDirectory() as folder:
        originals, tests = photos(Path(folder))
        known, others = labels(originals), loaded(tests, labels(tests))
        draw = np.random.default_rng(99)
        scenes, rows = [mosaic(others, draw) for _ in range(TESTS)], []
        for name, place in made(originals, Path(folder)).items():
            of = loaded(place, known)
            runs = np.array([precision(trained(of, seed), scenes) for seed in range(RUNS)]) * 100
            row = {
                "trained on": name,
                "photos": len(of[0]),
                "mAP": round(float(runs.mean()), 1),
                "of runs": [round(float(run.mean()), 1) for run in runs],
                "AP at 0.5": round(float(runs[:, 0].mean()), 1),
            }
            print(row, flush=True)
            rows.append(row)
    report("detector_training", rows)


if __name__ == "__main__":
    main()
