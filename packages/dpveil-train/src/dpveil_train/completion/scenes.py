"""Training scenes: frames of public photos with a hidden head, and a face to complete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np
import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.completion import QUIET
from dpveil.faces.geometry.head_frame import OVAL, frame_parts, inside, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN

STORED: Final = 192
"""Side of the stored images in pixels: a frame with a margin of a thirtieth on each side."""
INNER: Final = 180
"""Side of the frame in them, in pixels."""
EDGE: Final = 128
"""Value of the fourth channel where the photo is mirrored beyond its edge; 255 inside it, 0 if unknown."""

TURNED: Final = ((0.55, 0), (0.92, 1), (1.0, 2))
"""Classes of yaw (to either side) of the cells whose shapes are hidden, by the cumulated share of scenes."""

ALL: Final = 0.07
"""Share of scenes in which nothing of the photo is seen, as of a box around a large head."""
TRIES: Final = 12
"""Photos among which that is taken as an example whose head is turned most alike."""
CUT: Final = (0.35, 0.16)
"""Share of scenes in which a side of the face is hidden, too, as of faces that are turned; and up to which
part of the oval's width."""

Stored = UInt8[np.ndarray, "n 192 192 4"]


@dataclass(frozen=True, eq=False)
class Scenes:
    """A batch of tensors n × c × s × s: colours from -1 to 1, masks 0 or 1.

    `truth` is the photo. The masks are `hidden`, the part to paint; `known`, the outside that is given;
    `oval`, the part with the given `face`; and `counts`, where `truth` is a photograph. `noise` is the public
    noise. `own` (n) says which faces are the photo's own. `layout` (4 channels) is the photo's layout.
    `example` (7 channels) is that of the photo, or where `swapped` (n) of another one; `other` is its layout.
    """

    truth: Tensor
    hidden: Tensor
    known: Tensor
    face: Tensor
    oval: Tensor
    counts: Tensor
    noise: Tensor
    own: Tensor
    layout: Tensor
    example: Tensor
    other: Tensor
    swapped: Tensor

    @property
    def seen(self) -> Tensor:
        """The network's input, n × 6 × s × s."""
        colours = self.truth * self.known + self.face * self.oval
        return torch.cat([colours, self.known, self.oval, QUIET * self.noise], dim=1)

    @property
    def given(self) -> Tensor:
        """What the critics see beside a frame, n × 5 × s × s: the hidden part, and the photo's layout."""
        return torch.cat([self.hidden, self.layout], dim=1)

    def composed(self, painted: Tensor) -> Tensor:
        """Return the photo with its hidden part painted, and 0 where there is no photograph."""
        return (self.truth + self.hidden * (painted - self.truth)) * self.counts


class Maker:
    """Makes scenes from stored photos and a gallery's faces; `generator` is the only randomness."""

    def __init__(
        self,
        photos: Stored,
        rows: Int64[np.ndarray, " k"],
        faces: UInt8[np.ndarray, "m 128 128 3"],
        side: int,
        generator: torch.Generator,
        layouts: UInt8[np.ndarray, "n 192 192"],
        yaws: Float32[np.ndarray, " n"],
    ) -> None:
        self.photos, self.rows, self.faces, self.side = photos, rows, faces, side
        self.layouts, self.yaws = layouts, yaws
        self.generator = generator
        self.grid = pixel_grid(side)

    def random(self, count: int, others: int, swapped: int = 0) -> Scenes:
        """Return `count` augmented scenes; the last `others` of them have a face that is not the photo's.

        The first `swapped` have the example of another photo.
        """
        picks = self.rows[self._whole(len(self.rows), 2 * count)]
        tries = self.rows[self._whole(len(self.rows), TRIES * count)].reshape(count, TRIES)
        numbers = self._whole(len(self.faces), count) if len(self.faces) else None
        chance = torch.rand(count, 32, generator=self.generator, dtype=torch.float64).tolist()
        parts = []
        for row in range(count):
            u, other = chance[row], row >= count - others
            where = jitter(u[:5], 0.17, 0.13, 0.024)
            faces_at = jitter(u[5:10], 0.08, 0.06, 0.01) if other else where
            hidden = jitter([*u[10:14], 0.9], 0.05, 0.0, 0.024)
            hidden = Jitter(hidden.roll, 0.96 + 0.14 * u[14], hidden.right, hidden.down, mirrored=u[25] < 0.5)
            yaw = next(turn for share, turn in TURNED if u[24] <= share)
            if other and numbers is not None and u[15] < 0.5:
                given = self.gallery(int(numbers[row]), faces_at)
            else:
                given = self.photo(int(picks[count + row if other else row]), faces_at)[..., :3]
            photo = self.photo(int(picks[row]), where)
            oval = Jitter(0.0, 0.9 + 0.25 * u[16], *shift_of(where if not other else faces_at))
            known = self._strip(photo[..., 3] > 0, u[17:21])
            shape = in_blocks(self.hidden(hidden, yaw), u[20:24])
            if u[26] < ALL:
                shape, known = np.ones_like(shape), np.zeros_like(known)
            shown = self.oval(oval) & self.oval(cut(oval, u[27]))
            like = int(picks[row]), where
            if row < swapped:
                like = self._alike(*like, tries[row], u[28:32])
            layout = self.layout(int(picks[row]), where)
            parts.append((photo, given, shape, shown, known, layout, *self.like(*like)))
        own = torch.arange(count) < count - others
        return self._batch(parts, own, torch.arange(count) < swapped, vary=True)

    def _alike(self, number: int, where: Jitter, tries: np.ndarray, u: list[float]) -> tuple[int, Jitter]:
        """Return which of some photos shows a head turned as that of another one, and its jitter."""
        wanted = self.yaws[number] * (-1 if where.mirrored else 1)
        far = [np.abs(sign * self.yaws[tries] - wanted) for sign in (1, -1)]
        mirrored = bool(far[1].min() < far[0].min())
        at = replace(jitter([*u, 0.9], 0.06, 0.04, 0.01), mirrored=mirrored)
        return int(tries[far[mirrored].argmin()]), at

    def like(self, number: int, at: Jitter) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what an example is made from: a photo, its layout, and the oval of its face."""
        return self.photo(number, at), self.layout(number, at), self.oval(Jitter(0.0, 1.0, *shift_of(at)))

    def plain(
        self,
        photos: list[int],
        faces: list[int] | None,
        others: list[int] | None,
        examples: list[int] | None = None,
    ) -> Scenes:
        """Return scenes without augmentation, with faces of the gallery, of other photos, or their own.

        `photos`, `faces`, `others` and `examples` are indices; only the noise is random.
        """
        parts, at = [], Jitter()
        for place, number in enumerate(photos):
            photo = self.photo(number, at)
            if faces is not None:
                given = self.gallery(faces[place], at)
            else:
                given = self.photo((others or photos)[place], at)[..., :3]
            shown, like = self.layout(number, at), self.like((examples or photos)[place], at)
            parts.append((photo, given, self.hidden(at, 0), self.oval(at), photo[..., 3] > 0, shown, *like))
        own, swapped = (torch.full((len(photos),), one) for one in (not (faces or others), bool(examples)))
        return self._batch(parts, own, swapped, vary=False)

    def photo(self, number: int, at: Jitter) -> UInt8[np.ndarray, "s s 4"]:
        """Return the frame of one stored photo, jittered, with its mask channel."""
        out = self._warped(self.photos[number], self._back(at))
        level = out[..., 3]
        out[..., 3] = np.where(level > 250, 255, np.where(level > EDGE - 6, EDGE, 0))
        return out

    def layout(self, number: int, at: Jitter) -> UInt8[np.ndarray, "s s"]:
        """Return the layout of one stored photo, jittered as its frame."""
        return self._warped(self.layouts[number], self._back(at), cv2.INTER_NEAREST)

    def gallery(self, number: int, at: Jitter) -> UInt8[np.ndarray, "s s 3"]:
        """Return a face of the gallery at its position in the frame, jittered."""
        ends = frame_parts(np.array([[0.0, 0.0], [1.0, 1.0]]))
        size = self.faces.shape[1]
        zoom = size / (ends[1] - ends[0])
        to_face = np.diag([*zoom, 1.0])
        to_face[:2, 2] = -ends[0] * zoom
        shrink = np.diag([1 / self.side, 1 / self.side, 1.0])
        soft = cv2.GaussianBlur(self.faces[number], (0, 0), 0.57 * size / self.side)
        return self._warped(soft, from_centres(to_face @ at.inverse() @ shrink))

    def hidden(self, at: Jitter, yaw: int) -> np.ndarray:
        """Return the mask of the public shape of a cell with this class of yaw, jittered."""
        return Cell(0, 0, 0, 0, yaw).shape("head").holds(self._before(at))

    def oval(self, at: Jitter) -> np.ndarray:
        """Return the mask of the face's oval, jittered."""
        return inside(OVAL, self._before(at))

    def _before(self, at: Jitter) -> np.ndarray:
        """Return the position of every pixel before the jitter."""
        matrix = at.inverse()
        parts: np.ndarray = self.grid @ matrix[:2, :2].T + matrix[:2, 2]
        return parts

    def _back(self, at: Jitter) -> np.ndarray:
        """Return the matrix from pixels of the frame to pixels of a stored image."""
        zero = (STORED - INNER) / 2
        to_stored = np.array([[INNER, 0, zero], [0, INNER, zero], [0, 0, 1.0]])
        return from_centres(to_stored @ at.inverse() @ np.diag([1 / self.side, 1 / self.side, 1.0]))

    def _warped(self, picture: np.ndarray, back: np.ndarray, way: int = cv2.INTER_LINEAR) -> np.ndarray:
        flags, size = way | cv2.WARP_INVERSE_MAP, (self.side, self.side)
        return cv2.warpAffine(picture, back[:2], size, flags=flags, borderMode=cv2.BORDER_REFLECT_101)

    def _whole(self, below: int, count: int) -> np.ndarray:
        numbers: np.ndarray = torch.randint(below, (count,), generator=self.generator).numpy()
        return numbers

    def _strip(self, known: np.ndarray, u: list[float]) -> np.ndarray:
        """Return the known mask, sometimes without a strip at one edge, as if a neighbour were hidden."""
        if u[0] > 0.12:
            return known
        known, wide = known.copy(), int(u[1] * 0.25 * self.side)
        turned = np.rot90(known, int(u[2] * 4))
        turned[:wide] = False
        return known

    def _batch(
        self, parts: Sequence[tuple[np.ndarray, ...]], own: Tensor, swapped: Tensor, *, vary: bool
    ) -> Scenes:
        photo, given, hidden, oval, known, layout, *like = (np.stack(one) for one in zip(*parts, strict=True))
        levels = _planes(photo[..., :3])
        face = _planes(given)
        oval_mask, hidden_mask = _mask(oval & hidden), _mask(hidden)
        if vary:
            levels, face = coloured(levels, face, own, oval_mask, self.generator)
        noise = torch.randn(len(photo), 1, self.side, self.side, generator=self.generator)
        counts = _mask(photo[..., 3] == 255)
        return Scenes(
            truth=levels * 2 - 1,
            hidden=hidden_mask,
            known=_mask(known) * (1 - hidden_mask),
            face=(face * 2 - 1) * oval_mask,
            oval=oval_mask,
            counts=counts,
            noise=noise,
            own=own,
            layout=soft(layout),
            example=example_of(_planes(like[0][..., :3]), soft(like[1]), _mask(like[2])),
            other=soft(like[1]),
            swapped=swapped,
        )


def cut(at: Jitter, u: float) -> Jitter:
    """Return a face's jitter, in some scenes shifted to one side; `u` is a uniform number."""
    share, most = CUT
    if u >= share:
        return at
    return replace(at, right=at.right + OVAL[2] * 2 * most * (2 * u / share - 1))


def in_blocks(mask: np.ndarray, u: list[float]) -> np.ndarray:
    """Return a mask, in seven of ten cases grown to blocks as of a JPEG; `u` are four uniform numbers."""
    if u[0] > 0.7:
        return mask
    side = len(mask)
    step = round(side * (0.02 + 0.1 * u[1]))
    top, left = int(u[2] * step), int(u[3] * step)
    more = (-(side + top) % step, -(side + left) % step)
    wide = np.pad(mask, ((top, more[0]), (left, more[1])))
    squares = wide.reshape(wide.shape[0] // step, step, -1, step).any(axis=(1, 3))
    grown: np.ndarray = np.kron(squares, np.ones((step, step), np.bool_))
    return grown[top : top + side, left : left + side]


def soft(layout: UInt8[np.ndarray, "n s s"]) -> Tensor:
    """Return the layout's classes as n × 4 × s × s, as soft at the edges as a network's layout is.

    All are 0 where the layout is unknown.
    """
    one = torch.from_numpy(layout)[:, None] == torch.arange(CLASSES, dtype=torch.uint8)[:, None, None]
    one = one.float()
    return torch.nn.functional.avg_pool2d(one, 3, stride=1, padding=1, count_include_pad=False)


def _planes(pictures: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))).float() / 255


def _mask(mask: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(mask)).float()[:, None]


@dataclass(frozen=True)
class Jitter:
    """A random placement: `roll` in radians, `scale`, shifts in units of the frame's side, and mirroring."""

    roll: float = 0.0
    scale: float = 1.0
    right: float = 0.0
    down: float = 0.0
    mirrored: bool = False

    def inverse(self) -> np.ndarray:
        """Return the 3 × 3 matrix from positions in the frame to those before the jitter."""
        c, s = math.cos(self.roll) / self.scale, math.sin(self.roll) / self.scale
        middle, back = moved(0.5, 0.5), moved(-0.5 - self.right, -0.5 - self.down)
        turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        flip = np.diag([-1.0, 1.0, 1.0]) if self.mirrored else np.eye(3)
        out: np.ndarray = middle @ flip @ turn @ back
        return out


def moved(right: float, down: float) -> np.ndarray:
    """Return the 3 × 3 matrix of a shift."""
    return np.array([[1, 0, right], [0, 1, down], [0, 0, 1.0]])


def shift_of(at: Jitter) -> tuple[float, float]:
    """Return the shift of the face's centre by a jitter, in units of the frame's side."""
    middle = np.linalg.inv(at.inverse()) @ np.array([OVAL[0], OVAL[1], 1.0])
    return float(middle[0] - OVAL[0]), float(middle[1] - OVAL[1])


def jitter(u: list[float], roll: float, scale: float, shift: float) -> Jitter:
    """Return a jitter within these limits; `u` are five uniform numbers from 0 to 1."""
    a, b, c, d = (2 * value - 1 for value in u[:4])
    return Jitter(roll * a, math.exp(scale * b), shift * c, shift * d, mirrored=u[4] < 0.5)


def from_centres(back: np.ndarray) -> np.ndarray:
    """Return a matrix for positions counted from corners of pixels as one for those from centres."""
    out: np.ndarray = moved(-0.5, -0.5) @ back @ moved(0.5, 0.5)
    return out


def coloured(
    photo: Tensor, face: Tensor, own: Tensor, oval: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return photos with a slight colour augmentation, and faces with one that often differs from it."""
    n = len(photo)
    u = torch.rand(n, 16, 1, 1, 1, generator=generator)
    gain, gamma = 0.85 + 0.3 * u[:, 0], 0.85 + 0.35 * u[:, 1]
    tint = 1 + 0.12 * (u[:, 2:5, 0] - 0.5)
    some, grey = (u[:, 5] < 0.5).float(), (u[:, 6] < 0.05).float()

    def lit(x: Tensor) -> Tensor:
        out = (x.clamp(1e-4, 1) ** gamma * gain * tint).clamp(0, 1)
        out = x + some * (out - x)
        return out + grey * (out.mean(dim=1, keepdim=True) - out)

    photo, face = lit(photo), torch.where(own[:, None, None, None], lit(face), face)
    other = (face.roll(1, 0) * oval.roll(1, 0)).sum((2, 3), keepdim=True)
    other = other / oval.roll(1, 0).sum((2, 3), keepdim=True).clamp(min=1)
    mean = (face * oval).sum((2, 3), keepdim=True) / oval.sum((2, 3), keepdim=True).clamp(min=1)
    recolour = (other + 0.02) / (mean + 0.02)
    face = face * torch.where(u[:, 7] < 0.3, recolour.clamp(0.4, 2.5), torch.ones_like(recolour))
    gain, gamma = 0.7 + 0.6 * u[:, 8], 0.75 + 0.5 * u[:, 9]
    tint = 1 + 0.2 * (u[:, 10:13, 0] - 0.5)
    moved = face.clamp(1e-4, 1) ** gamma * gain * tint
    face = torch.where(u[:, 13] < 0.5, moved, face).clamp(0, 1)
    soft = torch.nn.functional.avg_pool2d(face, 3, stride=1, padding=1, count_include_pad=False)
    return photo, torch.where(u[:, 14] < 0.3, soft, face)


DARK: Final = 8 / 255
"""Added to levels before their ratio to a mean is taken."""
LARGEST: Final = 2.0
"""Largest of these ratios, less 1."""
SIDE: Final = 36
"""Side of a style, in pixels."""
RARE: Final = 0.03
"""Share that is added to those of the classes before their logarithms are taken."""
HALF: Final = 0.5
"""Share of a square that has to be known, so that it has a style."""


def example_of(levels: Tensor, layout: Tensor, oval: Tensor) -> Tensor:
    """Return examples, n × 7 × s × s: hair and skin relative to the face, and the layout; 0 within its oval.

    `levels` are frames n × 3 × s × s from 0 to 1, `layout` the shares of the classes, and `oval` the mask of
    the face. Ratios do not depend on the light of the photo, so that an example can be painted in another's;
    of clothes nothing is told, as they have to go on with those outside.
    """
    outside = 1 - oval
    hair, skin = (layout[:, one : one + 1] * outside for one in (HAIR, SKIN))
    person = (hair + skin) * _ratio(levels, oval)
    return torch.cat([person, layout * outside], dim=1)


def _ratio(levels: Tensor, where: Tensor) -> Tensor:
    """Return levels relative to their mean within a mask, less 1."""
    mean = (levels * where).sum((2, 3), keepdim=True) / where.sum((2, 3), keepdim=True).clamp(min=1)
    return ((levels + DARK) / (mean + DARK) - 1).clamp(-1, LARGEST)


def style_of(layout: Tensor, usual: Tensor) -> Tensor:
    """Return what is added to the logits of a layout so that it becomes like that of an example."""
    coarse = adaptive_avg_pool2d(layout, SIDE)
    style = torch.where(coarse.sum(dim=1, keepdim=True) > HALF, (coarse + RARE).log() - usual, 0.0)
    return interpolate(style, size=layout.shape[-2:], mode="bilinear", align_corners=False)


def usual_of(layouts: Tensor) -> Tensor:
    """Return the logarithms of the mean shares of the classes at each place, for `style_of`."""
    return (adaptive_avg_pool2d(layouts, SIDE).mean(dim=0, keepdim=True) + RARE).log()
