"""What a head wears: a garment with a neckline, and glasses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mesh import Head, noise, smooth, unit
from people import Person


@dataclass
class Mesh:
    """Vertices and faces, with values per vertex by name."""

    vertices: np.ndarray
    faces: np.ndarray
    values: dict[str, np.ndarray]


def below_neckline(rest: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return how far places lie below the neckline, in decimetres along the body; negative above it."""
    y, z = rest[:, 1], np.minimum(rest[:, 2], 0.60)
    drop = rng.uniform(-0.02, 0.04) + {"crew": 0.02, "scoop": 0.10, "v": 0.08}[kind]
    base = 6.72 - drop - 0.42 * (z - 0.3)  # the base of the neck, higher behind
    around = np.arctan2(np.abs(rest[:, 0]), z - 0.15)
    dip = {
        "crew": 0.04 * np.exp(-((around / 0.7) ** 2)),
        "scoop": 0.17 * np.exp(-((around / 0.85) ** 2)),
        "v": 0.36 * np.clip(1 - around / 1.0, 0, 1),
    }[kind]
    return base - dip - y


def garment(head: Head, person: Person) -> Mesh:
    """Return cloth around the shoulders; `below` is the distance to the neckline, and cloth starts at 0."""
    rng = person.rng("garment")

    def depth(rest: np.ndarray) -> np.ndarray:
        return below_neckline(rest, person.garment, person.rng("neckline"))

    below = depth(head.rest)
    inside = below[head.quads].max(1) > 0
    used = np.unique(head.quads[inside])
    place = np.full(len(head.fine), -1)
    place[used] = np.arange(len(used))
    rest, normal, moved = head.rest[used].astype(float), head.normals[used], np.zeros((len(used), 3))
    # Faces that the neckline crosses end at it: their outer vertices slide along the skin.
    for _ in range(3):
        edge = np.flatnonzero(depth(rest + moved) < 0)
        at = rest[edge] + moved[edge]
        slope = np.stack([(depth(at + step) - depth(at - step)) / 0.01 for step in 0.005 * np.eye(3)], 1)
        slope -= (slope * normal[edge]).sum(1, keepdims=True) * normal[edge]
        stride = -depth(at)[:, None] * slope / np.maximum((slope**2).sum(1, keepdims=True), 0.05)
        moved[edge] += np.clip(stride, -0.03, 0.03)
    rest = rest + moved
    below = np.maximum(depth(rest), 0)
    folds = 0.012 * noise(rest * [1, 0.5, 1], rng, 3.0) + 0.006 * noise(rest * [1, 0.4, 1], rng, 8.0)
    away = 0.005 + 0.05 * smooth(0.0, 0.6, below) + folds * smooth(0.05, 0.5, below)
    rib = 0.009 * smooth(0.085, 0.07, below) * smooth(0.2, 0.6, rest[:, 2])  # a band along the neckline
    vertices = head.fine[used] + moved + normal * (away + rib)[:, None]
    return Mesh(vertices, place[head.quads[inside]], {"below": below, "rest": rest})


def tube(path: np.ndarray, radius: tuple[float, float], closed: bool, around: int = 10) -> Mesh:
    """Return a tube along a path; `radius` is its half thickness across and along z."""
    ahead = np.roll(path, -1, 0) - np.roll(path, 1, 0) if closed else np.gradient(path, axis=0)
    along = unit(ahead)
    across = unit(np.cross(along, [0, 0, 1.0]) + 1e-6)
    third = unit(np.cross(across, along))
    turn = np.linspace(0, 2 * np.pi, around, endpoint=False)
    ring = (
        radius[0] * np.cos(turn)[:, None] * across[:, None]
        + radius[1] * np.sin(turn)[:, None] * third[:, None]
    )
    vertices = (path[:, None] + ring).reshape(-1, 3)
    index = np.arange(len(vertices)).reshape(len(path), around)
    start, end = (index, np.roll(index, -1, 0)) if closed else (index[:-1], index[1:])
    faces = np.stack([start, end, np.roll(end, -1, 1), np.roll(start, -1, 1)], -1).reshape(-1, 4)
    return Mesh(vertices, faces, {})


def joined(meshes: list[Mesh]) -> Mesh:
    """Return several meshes as one, without their values."""
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes)])
    faces = [m.faces + start for m, start in zip(meshes, starts[:-1], strict=True)]
    return Mesh(np.concatenate([m.vertices for m in meshes]), np.concatenate(faces), {})


def glasses(head: Head, person: Person) -> tuple[Mesh, Mesh] | None:
    """Return the frame and the lenses of glasses, or None."""
    if person.glasses == "none":
        return None
    rng = person.rng("glasses")
    thick = 0.011 if person.glasses == "metal" else rng.uniform(0.016, 0.024)
    wide, high = rng.uniform(0.225, 0.25), rng.uniform(0.165, 0.205)
    power = rng.uniform(2.2, 3.4)
    middle = (head.eyes["l"][0] + head.eyes["r"][0]) / 2
    apart = 0.095 + wide
    front = _front(head, middle, apart, wide, high)
    turn = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    c, s = np.cos(turn), np.sin(turn)
    rim = np.c_[np.sign(c) * np.abs(c) ** (2 / power) * wide, np.sign(s) * np.abs(s) ** (2 / power) * high]
    frames, lenses = [], []
    for sign in (1, -1):
        x, y = middle[0] + sign * apart + rim[:, 0], middle[1] - 0.035 + rim[:, 1]
        z = front - 0.10 * ((x - middle[0]) / 0.6) ** 2  # the front of glasses is curved
        path = np.c_[x, y, z]
        frames.append(tube(path, (thick, thick), True))
        centre = path.mean(0)
        faces = np.array([[i, (i + 1) % len(path), len(path), len(path)] for i in range(len(path))])
        lenses.append(Mesh(np.r_[path, [centre]], faces[:, :3], {}))
        frames.append(
            tube(_temple(head, middle, sign, apart + wide, front), (thick * 0.8, thick * 1.1), False)
        )
    t = np.linspace(-1, 1, 15)
    top = middle[1] + 0.015
    bridge = np.c_[middle[0] + t * 0.105, top + 0.035 * (1 - t**2), front + 0.015 * (1 - t**2)]
    frames.append(tube(bridge, (thick * 0.9, thick * 0.9), False))
    return joined(frames), joined(lenses)


def _front(head: Head, middle: np.ndarray, apart: float, wide: float, high: float) -> float:
    """Return the depth at which rims clear the face."""
    x, y = np.abs(head.fine[:, 0] - middle[0]), head.fine[:, 1] - middle[1] + 0.035
    near = (np.abs(x - apart) < wide) & (np.abs(y) < high) & (head.fine[:, 2] > 0.9)
    brow = (head.fine[near, 2] + 0.10 * ((head.fine[near, 0] - middle[0]) / 0.6) ** 2).max()
    return float(max(brow + 0.03, head.eyes["l"][0][2] + head.eyes["l"][1] + 0.13))


def _temple(head: Head, middle: np.ndarray, sign: int, half: float, front: float) -> np.ndarray:
    """Return the arm from the rim to behind the ear, outside of the head."""
    z = np.linspace(front - 0.10 * (half / 0.6) ** 2, 0.30, 24)
    y = middle[1] + 0.05 + 0.02 * np.linspace(0, 1, 24)
    side = head.fine[(head.fine[:, 0] * sign > 0.4) & (np.abs(head.fine[:, 1] - y[0]) < 0.06)]
    side = side[side[:, 2] > 0.62]  # in front of the ear
    x = np.full(24, half)
    for i, depth in enumerate(z):
        near = side[np.abs(side[:, 2] - depth) < 0.08]
        x[i] = max(half + 0.02, (np.abs(near[:, 0] - middle[0]).max() if len(near) else 0) + 0.02)
    x = np.minimum(np.maximum.accumulate(x), half + 0.20)
    x[0] = half
    return np.c_[middle[0] + sign * x, y, z]
