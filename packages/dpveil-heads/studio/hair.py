"""Strands: head hair in fifteen styles, brows, lashes and beards. All are polylines in decimetres."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from mesh import Base, Head, bump, noise, smooth, unit
from people import Person
from skin import beard_area

SKULL = np.array([0, 8.25, 0.38])
GREY = np.array([0.52, 0.50, 0.48])


@dataclass(frozen=True)
class Style:
    """How a style grows. Lengths in decimetres: on top, at the sides, at the nape.

    `thick` is how far the outermost strands stand from the skin, `lift` how steeply roots rise, `fall` how
    much gravity bends; waves have an amplitude and a length; `flow` names where hair is combed to.
    """

    count: int
    top: float
    side: float
    nape: float
    thick: float
    lift: float
    fall: float
    clump: float
    wave: float = 0.0
    wavelength: float = 1.0
    fuzz: float = 0.04
    points: int = 9
    flow: str = "parted"
    radius: float = 0.0030
    hairline: float = 0.0
    soft: float = 0.10
    long: bool = False


STYLES = {
    "short": Style(15000, 0.44, 0.17, 0.12, 0.085, 0.50, 0.10, 0.5, points=10, flow="side"),
    "crop": Style(16000, 0.22, 0.11, 0.09, 0.05, 0.55, 0.05, 0.35, flow="forward", points=7),
    "buzz": Style(30000, 0.07, 0.055, 0.05, 0.03, 1.0, 0.0, 0.15, fuzz=0.008, points=4, flow="out",
                  radius=0.0022, soft=0.21),
    "receding": Style(14000, 0.30, 0.16, 0.12, 0.05, 0.35, 0.10, 0.4, flow="side", soft=0.16),
    "swept": Style(15000, 0.75, 0.36, 0.22, 0.11, 0.55, 0.12, 0.55, 0.02, 0.8, points=13, flow="back"),
    "long": Style(10000, 4.0, 3.5, 3.0, 0.20, 0.5, 0.6, 0.7, 0.02, 1.2, 0.05, 18, radius=0.0037, long=True),
    "wavy": Style(10000, 3.8, 3.4, 3.0, 0.24, 0.6, 0.6, 0.75, 0.07, 0.75, 0.05, 22, radius=0.0037, long=True),
    "bob": Style(10000, 2.3, 1.55, 0.9, 0.20, 0.5, 0.55, 0.6, 0.02, 0.9, 0.04, 15, radius=0.0037, long=True),
    "curly": Style(11000, 1.5, 1.4, 1.1, 0.34, 0.8, 0.35, 0.7, 0.07, 0.28, 0.045, 24, long=True,
                   radius=0.0040),
    "afro": Style(17000, 0.36, 0.34, 0.25, 0.3, 1.0, 0.0, 0.5, 0.028, 0.11, 0.03, 18, flow="out",
                  radius=0.0032, soft=0.14),
    "afro short": Style(20000, 0.13, 0.09, 0.07, 0.05, 1.0, 0.0, 0.3, 0.014, 0.05, 0.015, 7, flow="out",
                        radius=0.0026, soft=0.17),
    "tied back": Style(16000, 1.5, 1.2, 0.9, 0.05, 0.25, 0.02, 0.45, 0.012, 0.7, 0.025, 14, flow="back",
                       long=True),
    "pixie": Style(15000, 0.85, 0.5, 0.32, 0.13, 0.55, 0.25, 0.55, 0.03, 0.6, 0.04, 13, flow="side"),
    "fringe": Style(11000, 3.0, 2.5, 2.0, 0.17, 0.45, 0.6, 0.6, 0.02, 1.0, 0.04, 16,
                    radius=0.0037, long=True),
}  # fmt: skip


@dataclass
class Strands:
    """Polylines n × k × 3 with a radius at the root and a linear colour each; radii shrink by `taper`."""

    points: np.ndarray
    radius: np.ndarray
    colour: np.ndarray
    taper: float = 0.6


@dataclass
class Roots:
    """Where strands grow: rest and actual places, normals, azimuth (degrees, 0 in front) and upness."""

    rest: np.ndarray
    at: np.ndarray
    normal: np.ndarray
    azimuth: np.ndarray
    top: np.ndarray


def hairline(azimuth: np.ndarray, person: Person, lower: float) -> np.ndarray:
    """Return the lowest rest height of hair for each azimuth in degrees."""
    male = person.gender == "male"
    receding = person.hair == "receding"
    rng = person.rng("hairline")
    front = 8.90 + lower + rng.normal(0, 0.025) + (0.05 * person.old if male else 0) + 0.20 * receding
    temple = front + (0.04 if male else -0.06) + rng.normal(0, 0.03) + 0.05 * receding
    side = 8.60 if receding else 8.50
    ear = 8.02 if male else 8.14
    angles = [0, 16, 30, 42, 50, 57, 63, 74, 104, 118, 135, 180]
    heights = [front, front + 0.01, temple, side + 0.15, side - 0.04, 8.26, ear, 8.36, 8.30, 7.75, 7.42, 7.36]
    return np.interp(azimuth, angles, heights)


def coverage(rest: np.ndarray, person: Person) -> np.ndarray:
    """Return how dense head hair grows at places of the body, from 0 to 1."""
    if person.hair == "bald":
        return np.zeros(len(rest))
    style, rng = STYLES[person.hair], person.rng("coverage")
    d = rest - SKULL
    azimuth = np.degrees(np.arctan2(np.abs(d[:, 0]), d[:, 2]))
    above = rest[:, 1] - hairline(azimuth, person, style.hairline)
    above = above - 0.018 * noise(rest, rng, 5) - 0.011 * noise(rest, rng, 16)
    soft = style.soft * (0.7 if person.gender == "male" else 1.0)
    dense = smooth(-0.35 * soft, soft, above) ** 1.3
    ear = (np.abs(rest[:, 0]) > 0.775) & (rest[:, 1] < 8.42) & (rest[:, 2] > 0.05) & (rest[:, 2] < 0.95)
    dense = dense * ~(ear & (rest[:, 1] > 7.6))
    if person.hair == "receding":
        dense = dense * (1 - smooth(0.60, 0.86, unit(d)[:, 1]) * rng.uniform(0.55, 0.97))
    return dense


def head_hair(base: Base, head: Head, person: Person) -> Strands | None:
    """Return the head hair of a person, or None if bald."""
    if person.hair == "bald":
        return None
    rng, style = person.rng("hair"), STYLES[person.hair]
    scale = rng.uniform(0.85, 1.15)
    style = replace(style, top=style.top * scale, side=style.side * scale, nape=style.nape * scale)
    if not style.long and style.flow != "out":
        style = replace(style, wave=style.wave + abs(rng.normal(0, 0.012)))
    roots = _roots(head, person, style, rng)
    n = len(roots.at)
    nape = smooth(110, 150, roots.azimuth) * (1 - roots.top)
    length = roots.top * style.top + (1 - roots.top) * ((1 - nape) * style.side + nape * style.nape)
    length = length * (1 + 0.10 * noise(roots.rest, rng, 4)) * (1.04 - 0.30 * rng.random(n) ** 2)
    part = rng.choice([-1, 1]) * rng.uniform(*((0.0, 0.3) if style.long else (0.32, 0.5)))
    part = part + 0.03 * noise(roots.rest, rng, 6)
    away = np.tanh((roots.rest[:, 0] - part) / (0.05 if style.long else 0.22))
    fringe = np.zeros(n)
    if person.hair == "fringe":
        fringe = smooth(46, 30, roots.azimuth) * smooth(9.25, 9.12, roots.rest[:, 1])
        length = length * (1 - fringe) + fringe * rng.uniform(0.62, 0.72)
        away = away * (1 - fringe)
    clumps = max(60, int(n / rng.uniform(14, 24)))
    centres = rng.choice(n, clumps, replace=False)
    mine = cKDTree(roots.rest[centres]).query(roots.rest)[1]
    guides = _guides(head, roots, centres[:2500], style, length, away, fringe, part, rng)
    points = _children(roots, guides, centres[:2500], length, away, style)
    character = rng.normal(0, 1, (clumps, 3))
    points = _waves_and_clumps(points, roots, length, centres, mine, character, style, rng)
    points[:, 0] = roots.at - roots.normal * 0.012
    if person.hair == "bob":
        _cut(points, 7.26 + 0.05 * rng.random(n))
    light = np.exp(
        min(0.20, 0.4 * style.clump) * character[mine, 0]
        + 0.10 * rng.normal(0, 1, n)
        + 0.12 * noise(roots.rest, rng, 7)
    )
    grey = rng.random(n) < person.grey * (1.15 - 0.3 * roots.top)
    colour = np.where(grey[:, None], GREY * rng.uniform(0.8, 1.1), np.array(person.colour)) * light[:, None]
    return Strands(points, style.radius * rng.uniform(0.75, 1.2, n), np.clip(colour, 0.003, 0.85))


def _roots(head: Head, person: Person, style: Style, rng: np.random.Generator) -> Roots:
    faces = np.concatenate([head.faces[:, [0, 1, 2]], head.faces[:, [0, 2, 3]]])
    a, b, c = (head.coarse[faces[:, i]] for i in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    middle = head.coarse_rest[faces].mean(1)
    area = area * (middle[:, 1] > 7.2) * (np.linalg.norm((middle - SKULL) * [1, 0.85, 0.85], axis=1) > 0.5)
    area = area * (coverage(middle, person) + (middle[:, 1] > 7.9) * 0.2 > 0)
    tries = style.count * 3
    chosen = rng.choice(len(faces), tries, p=area / area.sum())
    u = rng.random((tries, 2))
    u = np.where(u.sum(1, keepdims=True) > 1, 1 - u, u)
    w = np.c_[1 - u.sum(1), u][:, :, None]
    rest = (head.coarse_rest[faces[chosen]] * w).sum(1)
    at = (head.coarse[faces[chosen]] * w).sum(1)
    keep = np.flatnonzero(rng.random(tries) < coverage(rest, person))[: style.count]
    rest, at = rest[keep], at[keep]
    # The coarse faces lie a little off the smooth surface.
    near = head.tree.query(at)[1]
    normal = head.normals[near]
    at = at - ((at - head.fine[near]) * normal).sum(1, keepdims=True) * normal
    d = rest - SKULL
    azimuth = np.degrees(np.arctan2(np.abs(d[:, 0]), d[:, 2]))
    return Roots(rest, at, normal, azimuth, smooth(0.35, 0.72, unit(d)[:, 1]))


def _flow(style: Style, q, top, away, front, normal, fringe) -> np.ndarray:
    """Return the direction, in the surface, that hair at points `q` is combed to."""
    zero = np.zeros(len(q))
    if style.flow == "side":
        want = top * np.c_[away * 0.95, zero, zero - 0.35] + (1 - top) * np.array([0, -1, -0.35])
    elif style.flow == "forward":
        want = top * np.c_[away * 0.30, zero, zero + 0.5] + (1 - top) * np.array([0, -1, 0.1])
    elif style.flow == "back":
        want = unit(np.array([0, 8.35, -1.0]) - q)
        if not style.long:
            want = want + np.c_[0.35 * away, zero, zero] + (1 - top) * np.array([0, -0.6, 0])
    elif style.flow == "out":
        return unit(normal + 0.3 * np.array([0, -0.2, 0.3]))
    else:
        want = top * np.c_[away, zero - 0.15, zero - 0.50]
        want = want + (1 - top) * np.c_[0.05 * away, zero - 1, zero - 0.12 - 0.45 * front]
    forward = np.c_[0.25 * away, zero - 0.7, zero + 0.9]
    want = want * (1 - fringe[:, None]) + forward * fringe[:, None]
    return unit(want - (want * normal).sum(1, keepdims=True) * normal)


def _guides(head, roots, chosen, style, length, away, fringe, part, rng) -> np.ndarray:
    """Return one guide per clump, integrated over the head's surface."""
    k = style.points
    out = np.zeros((len(chosen), k, 3))
    out[:, 0] = roots.at[chosen]
    step = (length[chosen] / (k - 1))[:, None]
    front = (smooth(55, 15, roots.azimuth) * roots.top)[chosen]
    rank = 0.8 * np.exp(-np.abs(roots.rest[:, 0] - part) * 1.4) + 0.2 * rng.random(len(roots.at))
    rank, away, fringe, top = rank[chosen], away[chosen], fringe[chosen], roots.top[chosen]
    lift0 = style.lift * (0.8 + 0.4 * rng.random(len(chosen))) * (1 - 0.6 * fringe)
    jitter = 0.08 * rng.normal(0, 1, (len(chosen), 3))
    direction = roots.normal[chosen].copy()
    for i in range(1, k):
        q, s = out[:, i - 1], (i - 1) * step[:, 0]
        normal = head.normals[head.tree.query(q)[1]]
        up = smooth(0.3, 0.7, unit(q - SKULL)[:, 1])[:, None]
        flow = _flow(style, q, up, away, front, normal, fringe)
        rise = lift0 * np.exp(-s / (0.16 if style.long else 0.30)) * (0.45 + 0.75 * front + 0.3 * top)
        turn = unit(flow * (1 - 0.6 * rise[:, None]) + normal * rise[:, None] + jitter)
        weight = style.fall * np.clip(0.2 + s / 0.8, 0, 1)[:, None]
        direction = unit(0.5 * direction + 0.5 * turn + np.array([0, -1.0, 0]) * weight)
        new = q + direction * step
        far, near = head.tree.query(new)
        normal = head.normals[near]
        height = ((new - head.fine[near]) * normal).sum(1)
        grown = np.clip(i * step[:, 0] / (0.2 + 1.2 * style.thick), 0, 1)
        least = 0.012 + style.thick * (0.15 + 0.85 * rank) * grown * (1 - 0.7 * fringe)
        push = np.clip(least - height, 0, 0.25) * (far < 0.6)
        if style.long:  # lie down on the head above the neck
            down = np.clip((least - height) * 0.45, -0.12, 0) * (far < 0.8) * smooth(7.3, 7.9, new[:, 1])
            push = np.where(height > least, down, push)
        elif style.fall > 0:
            down = np.clip((least + 0.05 - height) * 0.4, -0.08, 0) * (1 - 0.7 * front)
            push = np.where(height > least + 0.05, down, push)
        out[:, i] = new + push[:, None] * normal
    return out


def _children(roots, guides, chosen, length, away, style) -> np.ndarray:
    """Return all strands, each a mean of the three nearest guides of its side of the part."""
    key = np.c_[roots.rest, (3 if style.long else 0.3) * away]
    far, near = cKDTree(key[chosen]).query(key, k=3)
    weight = 1 / (far + 0.02) ** 2
    weight /= weight.sum(1, keepdims=True)
    shape = guides - guides[:, :1]
    ratio = np.clip(length[:, None] / length[chosen][near], 0.6, 1.4)
    return roots.at[:, None] + (shape[near] * (weight * ratio)[..., None, None]).sum(1)


def _waves_and_clumps(points, roots, length, centres, mine, character, style, rng) -> np.ndarray:
    n, k = points.shape[:2]
    t = np.linspace(0, 1, k)[None]
    s = t * length[:, None]
    along = unit(np.gradient(points, axis=1))
    side = unit(np.cross(along, roots.normal[:, None] + 0.01))
    up = unit(np.cross(side, along))
    root = (roots.at - roots.at[centres][mine])[:, None]
    pull = style.clump * np.clip(s / 0.18, 0, 1) * (0.35 + 0.65 * t) * rng.uniform(0.5, 1.1, (n, 1))
    goal = points[centres][mine] + root * (1 - 0.8 * t[..., None])
    near = np.linalg.norm(goal - points, axis=-1, keepdims=True) < 0.35
    points = points + pull[..., None] * (goal - points) * near
    if style.wave > 0:
        period = style.wavelength * (1 + 0.15 * rng.normal(0, 1, len(centres)))[mine][:, None]
        phase = rng.uniform(0, 2 * np.pi, len(centres))[mine][:, None] + rng.normal(0, 0.5, (n, 1))
        size = style.wave * np.clip(s / (1.2 * style.wavelength), 0, 1) * (1 + 0.3 * character[mine][:, :1])
        angle = phase + 2 * np.pi * s / period
        points = (
            points + side * (size * np.sin(angle))[..., None] + up * (0.7 * size * np.cos(angle))[..., None]
        )
    a, b = rng.normal(0, 0.35, (2, n, 1, 3))
    fuzz = style.fuzz * t[..., None] ** 1.3 * np.where(rng.random(n) < 0.015, 2.2, 1)[:, None, None]
    return points + fuzz * (a * t[..., None] + b * np.sin(3 * t + rng.uniform(0, 6.28, (n, 1)))[..., None])


def _cut(points: np.ndarray, height: np.ndarray) -> None:
    """End strands at a height, in place."""
    below = points[:, :, 1] < height[:, None]
    first = np.where(below.any(1), below.argmax(1), points.shape[1])
    for i in range(1, points.shape[1]):
        over = i > first
        points[over, i] = points[over, i - 1] + [0, -1e-4, 0]


# Brows, lashes and beards ---------------------------------------------------------------------------

BROW = np.array([[0.115, 8.345], [0.20, 8.358], [0.31, 8.370], [0.42, 8.370], [0.50, 8.350], [0.555, 8.318]])


def brows(base: Base, head: Head, person: Person) -> Strands:
    """Return the strands of both eyebrows."""
    rng, male = person.rng("brows"), person.gender == "male"
    n = int((320 if male else 340) * rng.uniform(0.75, 1.2))
    near = np.flatnonzero((head.rest[:, 2] > 0.9) & (head.rest[:, 1] > 8.2) & (head.rest[:, 1] < 8.75))
    tree = cKDTree(head.rest[near][:, :2])
    arch, rise = rng.normal(0, 0.010), rng.normal(0, 0.010)
    width = (0.042 if male else 0.031) * rng.uniform(0.8, 1.25)
    out = []
    for sign in (1, -1):
        t = rng.beta(1.3, 1.55, n)
        x = np.interp(t, np.linspace(0, 1, 6), BROW[:, 0])
        y = (
            np.interp(t, np.linspace(0, 1, 6), BROW[:, 1])
            + rise
            + (-0.008 if male else 0.010)
            + arch * np.sin(np.pi * t)
            + (0 if male else 0.012) * np.exp(-(((t - 0.62) / 0.28) ** 2))
            + rng.normal(0, 0.004)
        )
        across = np.clip(rng.normal(0, 0.6, n), -1.5, 1.5)
        y = y + width * np.interp(t, [0, 0.15, 0.6, 1], [0.6, 1, 0.75, 0.3]) * across
        far, which = tree.query(np.c_[sign * x, y], k=4)
        w = 1 / (far + 0.003)
        w /= w.sum(1, keepdims=True)
        root = (head.fine[near[which]] * w[..., None]).sum(1)
        normal = unit((head.normals[near[which]] * w[..., None]).sum(1))
        angle = np.interp(t, [0, 0.2, 0.5, 1], [78, 42, 12, -22]) - across * np.interp(
            t, [0, 0.4, 1], [5, 22, 8]
        )
        angle = np.radians((angle + rng.normal(0, 13, n)) * (1 if male else 0.7))
        d = np.c_[sign * np.cos(angle), np.sin(angle), 0 * angle]
        d = unit(d - (d * normal).sum(1, keepdims=True) * normal)
        length = np.interp(t, [0, 0.3, 1], [0.055, 0.08, 0.055]) * rng.uniform(0.6, 1.15, n)
        length = length * (1 if male else 0.85)
        s = (length[:, None] * np.linspace(0, 1, 4))[..., None]
        bend = np.array([sign * 1.5, -3.5, 0]) * s**2
        points = root[:, None] + d[:, None] * s + normal[:, None] * (0.003 + 0.10 * s) + bend
        points[:, 0] = root - normal * 0.003
        out.append(points)
    points = np.concatenate(out)
    grey = rng.random(len(points)) < 0.75 * person.grey
    dark = np.clip(np.array(person.colour) * 0.7 + (0.005 if male else 0.010), 0, 0.09)
    colour = np.where(grey[:, None], GREY * 0.7, dark) * np.exp(rng.normal(0, 0.2, (len(points), 1)))
    return Strands(points, np.full(len(points), 0.0014 if male else 0.0011), colour, 0.85)


def lashes(base: Base, head: Head, person: Person) -> Strands:
    """Return the lashes of both eyes, along the helpers of the base mesh."""
    rng, out = person.rng("lashes"), []
    for side in "lr":
        eye = head.eyes[side][0]
        for upper, name in ((True, "2"), (False, "1")):
            strip = head.all[base.group(f"helper-{side}-eyelashes-{name}")]
            strip = strip[np.argsort(strip[:, 0])]
            r = np.linalg.norm(strip - eye, axis=1)
            bins = np.array_split(np.arange(len(strip)), 12)
            low = strip[[b[r[b].argmin()] for b in bins]]
            high = strip[[b[r[b].argmax()] for b in bins]]
            female = person.gender == "female"
            n = (170 if female else 70) if upper else (60 if female else 36)
            t = rng.random(n) * 11
            at, to = _along(low, t), _along(high, np.clip(t + rng.normal(0, 0.35, n), 0, 11))
            reach = (0.95 if female else 0.5) * (1 if upper else 0.5)
            d = (to - at) * (reach * rng.uniform(0.6, 1.1, (n, 1)))
            curl = np.array([0, 1, 0]) * np.linalg.norm(d, axis=1, keepdims=True) * (0.25 if upper else -0.1)
            out.append(np.stack([at, at + d * 0.5, at + d + curl], 1))
    points = np.concatenate(out)
    return Strands(
        points,
        np.full(len(points), 0.0024 if female else 0.0014),
        np.tile([0.008, 0.007, 0.006], (len(points), 1)),
        0.85,
    )


def _along(path: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(t, np.arange(len(path)), path[:, c]) for c in range(3)], 1)


def beard(head: Head, person: Person, lips: np.ndarray) -> Strands | None:
    """Return the strands of a beard, or None."""
    kinds = {  # strands, length, radius
        "stubble": (5000, 0.022, 0.0013), "short": (8000, 0.055, 0.0019), "full": (10000, 0.16, 0.0024),
        "goatee": (5000, 0.09, 0.0022), "moustache": (2600, 0.075, 0.0022),
    }  # fmt: skip
    if person.beard not in kinds:
        return None
    rng, rest = person.rng("beard"), head.rest
    n, length, radius = kinds[person.beard]
    where = beard_area(rest) * (lips < 0.25) * (rest[:, 1] > 6.95)
    x, y = np.abs(rest[:, 0]), rest[:, 1]
    lip = smooth(7.60, 7.62, y) * smooth(0.36, 0.30, x)
    chin = smooth(0.34, 0.24, x) * smooth(7.62, 7.58, y)
    if person.beard == "moustache":
        where = where * lip
    elif person.beard == "goatee":
        where = where * np.maximum(lip, chin)
    else:
        where = where * np.clip(1 + 0.25 * noise(rest, rng, 6), 0.3, 1.5)
    chosen = rng.choice(len(rest), n, p=where / where.sum())
    normal = head.normals[chosen]
    slip = rng.normal(0, 0.007, (n, 3))
    root = head.fine[chosen] + slip - (slip * normal).sum(1, keepdims=True) * normal
    p = rest[chosen]
    outward = np.c_[
        np.sign(p[:, 0]) * np.clip(np.abs(p[:, 0]) * 3, 0, 1) * smooth(7.58, 7.64, p[:, 1]), np.zeros((n, 2))
    ]
    d = unit(0.55 * normal + np.array([0, -0.9, 0.05]) + 0.8 * outward + rng.normal(0, 0.25, (n, 3)))
    grow = length * rng.uniform(0.55, 1.1, (n, 1)) * (0.5 + 0.5 * np.minimum(1, where[chosen])[:, None])
    grow = (
        grow
        * (0.75 + 0.5 * bump(np.c_[np.abs(p[:, :1]), p[:, 1:]], (0, 7.15, 1.4), (0.3, 0.2, 0.5)))[:, None]
    )
    down = np.array([0, -0.35, 0]) * grow
    points = np.stack([root - normal * 0.004, root + d * grow * 0.5, root + d * grow + down], 1)
    # Curled strands look softer than straight ones.
    points[:, 2] += rng.normal(0, 0.12, (n, 3)) * grow
    grey = rng.random(n) < np.clip(person.grey * 1.2, 0, 1)
    dark = np.clip(np.array(person.colour) * 0.85 + 0.004, 0, 0.25)
    colour = np.where(grey[:, None], GREY * 0.9, dark) * np.exp(rng.normal(0, 0.25, (n, 1)))
    return Strands(points, np.full(n, radius), colour, 0.7)
