"""The network that completes heads, a layout first and then the colours, and the critics of its training.

Where hair ends and a collar begins, nothing outside tells. A network that minimises an error of colours
paints the mean of all answers there, a fog; the most likely layout has sharp edges, and so has a head that is
painted to it.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, interpolate, max_pool2d

from dpveil.faces.geometry.layout import CLASSES, LOOK, SKIN, STRIDE
from dpveil_train.completion.scenes import Scenes

WIDTHS: Final = (32, 64, 128)
"""Channels at a half, a quarter and an eighth of the frame's side."""
DILATIONS: Final = (1, 2, 4, 2, 1, 4, 2, 1)
"""Dilations of the residual blocks at the lowest resolution."""
AGAIN: Final = 2
"""Residual blocks at each finer resolution after it."""
LOOK_WIDTHS: Final = (24, 48, 64)
LAYOUT_WIDTHS: Final = (24, 48, 96)
LAYOUT_DILATIONS: Final = (1, 2, 4, 8, 2, 1)
UNKNOWN: Final = 255
"""What a pixel of a training layout is that shows another person's head."""
SHARP: Final = 12.0
"""Factor of the logits of a layout before the painter sees it."""
WIDE: Final = 0.7
"""What is subtracted from the logits of skin: where ears and jaws end differs, and the most likely class of
each pixel by itself gives cheeks that are too wide."""
GROUPS: Final = 8
"""Groups of the group normalisation."""
SLOPE: Final = 0.2
"""Negative slope of leaky ReLUs."""


class Block(nn.Module):  # type: ignore[misc,unused-ignore]
    """A residual block of two convolutions, the first dilated."""

    def __init__(self, width: int, dilation: int = 1) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.GroupNorm(GROUPS, width),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation, bias=False),
            nn.GroupNorm(GROUPS, width),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, of the input's shape."""
        out: Tensor = x + self.inner(x)
        return out


def blocks(width: int) -> list[Block]:
    """Return the blocks after the lowest resolution."""
    return [Block(width) for _ in range(AGAIN)]


class Completer(nn.Module):  # type: ignore[misc,unused-ignore]
    """Lays out the hidden part of a head and paints it: n × 18 × s × s in, n × 7 × s × s out.

    The output channels are RGB from -1 to 1, and the share of each class of the layout.

    The input channels are RGB of the outside and of the released face, 0 elsewhere; the mask of the outside;
    the mask of the face; noise; what is added to the logits of each class of the layout; and the `LOOK`
    channels of an example's look, each number repeated in a square of `STRIDE` pixels, or 0 for none. s is a
    multiple of 8.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layout = Layout()
        self.painter = Painter()

    def forward(self, given: Tensor) -> Tensor:
        """Return the completed frame, of which only the hidden part is used, and its layout."""
        seen, style, look = given[:, :6], given[:, 6 : 6 + CLASSES], given[:, 6 + CLASSES :]
        layout = sharpened(self.layout(seen) + style)
        return torch.cat([self.painter(seen, layout, look), layout], dim=1)


class Looks(nn.Module):  # type: ignore[misc,unused-ignore]
    """Encodes how an example's hair, neck and clothes look: n × 7 × s × s in, n × `LOOK` × s/8 × s/8 out.

    The input is that of `examples.example_of`, without the example's face. The output is from -1 to 1. It is
    trained together with the painter, so that this has nothing to guess, and is not part of the file:
    examples are.
    """

    def __init__(self) -> None:
        super().__init__()
        fine, middle, deep = LOOK_WIDTHS
        self.layers = nn.Sequential(
            nn.Conv2d(3 + CLASSES, fine, 4, stride=2, padding=1),
            Block(fine),
            nn.Conv2d(fine, middle, 4, stride=2, padding=1),
            Block(middle),
            nn.Conv2d(middle, deep, 4, stride=2, padding=1),
            Block(deep),
            nn.Conv2d(deep, LOOK, 1),
            nn.Tanh(),
        )

    def forward(self, example: Tensor) -> Tensor:
        """Return the look."""
        out: Tensor = self.layers(example)
        return out


def spread(look: Tensor) -> Tensor:
    """Return a look as planes of the frame's size."""
    return interpolate(look, scale_factor=float(STRIDE), mode="nearest")


def sharpened(logits: Tensor) -> Tensor:
    """Return a layout from its logits: nearly 0 or 1 for each class, with edges that are one pixel soft."""
    more = torch.tensor([-WIDE if one == SKIN else 0.0 for one in range(CLASSES)])
    return (SHARP * (logits + more[:, None, None])).softmax(dim=1)


class Layout(nn.Module):  # type: ignore[misc,unused-ignore]
    """Says what each pixel of a head shows: n × 6 × s × s in, logits n × `CLASSES` × s × s out."""

    def __init__(self) -> None:
        super().__init__()
        fine, middle, deep = LAYOUT_WIDTHS
        self.stem = nn.Conv2d(6, fine, 6, stride=2, padding=2)
        self.fine = Block(fine)
        self.to_middle = nn.Conv2d(fine, middle, 3, stride=2, padding=1)
        self.middle = Block(middle)
        self.to_deep = nn.Conv2d(middle, deep, 3, stride=2, padding=1)
        self.deep = nn.Sequential(*(Block(deep, dilation) for dilation in LAYOUT_DILATIONS))
        self.from_deep = nn.Conv2d(deep, middle, 1)
        self.middle_again = nn.Sequential(nn.Conv2d(2 * middle, middle, 3, padding=1), Block(middle))
        self.from_middle = nn.Conv2d(middle, fine, 1)
        self.fine_again = nn.Sequential(nn.Conv2d(2 * fine, fine, 3, padding=1), Block(fine))
        self.last = nn.Sequential(nn.LeakyReLU(SLOPE), nn.Conv2d(fine, CLASSES, 3, padding=1))

    def forward(self, seen: Tensor) -> Tensor:
        """Return the logits, linear between every other pixel."""
        fine = self.fine(self.stem(seen))
        middle = self.middle(self.to_middle(fine))
        x = self.deep(self.to_deep(middle))
        x = interpolate(self.from_deep(x), scale_factor=2.0, mode="nearest")
        x = self.middle_again(torch.cat([x, middle], dim=1))
        x = interpolate(self.from_middle(x), scale_factor=2.0, mode="nearest")
        x = self.last(self.fine_again(torch.cat([x, fine], dim=1)))
        out: Tensor = interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return out


class Painter(nn.Module):  # type: ignore[misc,unused-ignore]
    """Paints a head to a layout, as it looks: n × 6, n × `CLASSES` and n × `LOOK` planes of s × s pixels in,
    n × 3 × s × s out.
    """

    def __init__(self) -> None:
        super().__init__()
        fine, middle, deep = WIDTHS
        self.stem = nn.Conv2d(6 + CLASSES, fine, 6, stride=2, padding=2)
        self.fine = Block(fine)
        self.to_middle = nn.Conv2d(fine, middle, 3, stride=2, padding=1)
        self.middle = Block(middle)
        self.to_deep = nn.Conv2d(middle, deep, 3, stride=2, padding=1)
        self.look = nn.Conv2d(LOOK, deep, 1, stride=STRIDE, bias=False)
        self.deep = nn.Sequential(*(Block(deep, dilation) for dilation in DILATIONS))
        self.look_again = nn.Conv2d(LOOK, deep, 1, stride=STRIDE, bias=False)
        self.from_deep = nn.Conv2d(deep, middle, 1)
        self.middle_again = nn.Sequential(nn.Conv2d(2 * middle, middle, 3, padding=1), *blocks(middle))
        self.from_middle = nn.Conv2d(middle, fine, 1)
        self.fine_again = nn.Sequential(nn.Conv2d(2 * fine, fine, 3, padding=1), *blocks(fine))
        self.spread = nn.Sequential(
            nn.LeakyReLU(SLOPE), nn.Conv2d(fine, 48, 3, padding=1), nn.PixelShuffle(2), nn.LeakyReLU(SLOPE)
        )
        self.last = nn.Sequential(
            nn.Conv2d(12 + 6 + CLASSES, 16, 3, padding=1),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(16, 3, 3, padding=1),
        )

    def forward(self, seen: Tensor, layout: Tensor, look: Tensor) -> Tensor:
        """Return the completed frame."""
        given = torch.cat([seen, layout], dim=1)
        fine = self.fine(self.stem(given))
        middle = self.middle(self.to_middle(fine))
        x = self.deep(self.to_deep(middle) + self.look(look)) + self.look_again(look)
        x = interpolate(self.from_deep(x), scale_factor=2.0, mode="nearest")
        x = self.middle_again(torch.cat([x, middle], dim=1))
        x = interpolate(self.from_middle(x), scale_factor=2.0, mode="nearest")
        x = self.spread(self.fine_again(torch.cat([x, fine], dim=1)))
        out: Tensor = seen[:, :3] + self.last(torch.cat([x, given], dim=1))
        return out


class Critics(nn.Module):  # type: ignore[misc,unused-ignore]
    """Two critics: one of the frame, for texture, and one of the frame at half its size, for whole heads."""

    def __init__(self) -> None:
        super().__init__()
        self.critics = nn.ModuleList([Critic(), Critic()])

    def forward(self, frame: Tensor, given: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
        """Return the scores of patches, and the features of each stage, of each critic."""
        small = avg_pool2d(frame, 2), avg_pool2d(given, 2)
        return [critic(*seen) for critic, seen in zip(self.critics, ((frame, given), small), strict=True)]


class Critic(nn.Module):  # type: ignore[misc,unused-ignore]
    """Scores patches of a frame, high for photographs, given the mask of its hidden part and the layout.

    Normalised by groups and not spectrally: under a limit of its slope it took blurred hair for photographs.
    """

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 160)) -> None:
        super().__init__()
        stages, before = [], 4 + CLASSES
        for number, width in enumerate(widths):
            parts: list[nn.Module] = [nn.Conv2d(before, width, 4, stride=2 if number < 3 else 1, padding=1)]
            if number > 0:
                parts.append(nn.GroupNorm(GROUPS, width))
            stages.append(nn.Sequential(*parts, nn.LeakyReLU(SLOPE)))
            before = width
        self.stages = nn.ModuleList(stages)
        self.score = nn.Conv2d(before, 1, 3, padding=1)

    def forward(self, frame: Tensor, given: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the scores of patches, and the features of each stage."""
        x, seen = torch.cat([frame, given], dim=1), []
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        return self.score(x), seen


CHANCES: Final = 0.99
"""Least share of a downscaled pixel within a mask for it to count."""
BESIDE: Final = 25
"""Pixels by which the face's oval is dilated (half on each side) to exclude what is close to it."""
NEAR: Final = 21
"""Side of the square around a pixel, in pixels, in which the share of seen pixels counts."""
FAR: Final = 0.25
"""Weight of the loss of levels where nothing around a pixel is seen."""


def over(scores: Tensor, hidden: Tensor) -> Tensor:
    """Return the mean score of patches, weighted by the share of each that is hidden."""
    weight = adaptive_avg_pool2d(hidden, scores.shape[-2:])
    mean: Tensor = (scores.float() * weight).sum() / weight.sum().clamp(min=1)
    return mean


def each(mask: Tensor) -> Tensor:
    """Return one value for each scene, n, as n × 1 × 1 × 1."""
    return mask[:, None, None, None]


def laid_out(scenes: Scenes, logits: Tensor) -> Tensor:
    """Return the cross-entropy of a layout where it is hidden, and with less weight where it is seen.

    Around a face that is not the photo's own, only what is at some distance from it counts.
    """
    own = each(scenes.own).float()
    weight = (scenes.hidden + 0.2 * (1 - scenes.hidden)) * scenes.counts
    weight = weight * (own + (1 - own) * (1 - widened(scenes.oval, BESIDE)))
    worth = -(scenes.layout * logits.log_softmax(dim=1)).sum(dim=1, keepdim=True)
    mean: Tensor = (worth * weight).sum() / weight.sum().clamp(min=1)
    return mean


def reconstruction(
    scenes: Scenes, painted: Tensor, looked: Tensor, guessed: Tensor | None = None
) -> dict[str, Tensor]:
    """Return the reconstruction losses: of levels, of gradients, and of the given face's gradients.

    Around a face that is not the photo's own, only hair and background at some distance from it count; in
    scenes with a `guessed` layout, nothing but the face does. Where the network is told how the head looks,
    in scenes `looked` at (n), all of it has one right answer.
    """
    own = each(scenes.own).float()
    near = widened(scenes.oval, BESIDE)
    where = scenes.hidden * scenes.counts * (own + (1 - own) * (1 - near))
    if guessed is not None:
        where = where * each(~guessed).float()
    sure = where * torch.where(each(looked), torch.ones_like(where), FAR + (1 - FAR) * given(scenes))
    level = ((painted - scenes.truth).abs() * sure).sum() / (3 * sure.sum()).clamp(min=1)
    whole = scenes.truth + scenes.hidden * (painted - scenes.truth)
    slope = _slopes(whole, scenes.truth, where)
    inner = 1 - widened(1 - scenes.oval, 5)
    kept = _slopes(painted, scenes.face, inner * (1 - own))
    return {"level": level, "slope": slope, "kept": kept}


def widened(mask: Tensor, window: int) -> Tensor:
    """Return a mask dilated by a square of `window` × `window` pixels; `window` is odd."""
    along = max_pool2d(mask, (1, window), stride=1, padding=(0, window // 2))
    out: Tensor = max_pool2d(along, (window, 1), stride=1, padding=(window // 2, 0))
    return out


def given(scenes: Scenes) -> Tensor:
    """Return the share of pixels around each that the network sees, doubled, at most 1.

    There is one right answer next to what is seen; further away any hair will do, and the critic decides.
    """
    whole = avg_pool2d(1 - scenes.hidden + scenes.hidden * scenes.oval, NEAR, stride=1, padding=NEAR // 2)
    return (2 * whole).clamp(max=1)


def _slopes(a: Tensor, b: Tensor, where: Tensor) -> Tensor:
    """Return the mean absolute difference of image gradients within a mask, summed over three scales."""
    total = a.new_zeros(())
    for scale in (1, 2, 4):
        if scale > 1:
            a, b, where = avg_pool2d(a, 2), avg_pool2d(b, 2), (avg_pool2d(where, 2) > CHANCES).float()
        d = a - b
        for axis in (2, 3):
            weight = where.narrow(axis, 1, d.shape[axis] - 1) * where.narrow(axis, 0, d.shape[axis] - 1)
            total = total + (d.diff(dim=axis).abs() * weight).sum() / (3 * weight.sum()).clamp(min=1)
    return total
