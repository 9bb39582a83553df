"""The network that completes heads, a layout first and then the colours, and the critics of its training.

Where hair ends and a collar begins, nothing outside tells. A network that minimises an error of colours
paints the mean of all answers there, a fog; the most likely layout has sharp edges, and so has a head that is
painted to it.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate

from dpveil.faces.geometry.layout import CLASSES, SKIN
from dpveil.faces.geometry.looks import LOOK, STRIDE

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
