"""The picture of text and plates, docs/text.png.

    python docs/make_text.py

Needs the extra `text`, so the picture is in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

import dpveil

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from text_scenes import plate_face

OUT = Path(__file__).parent / "text.png"
FRAME = (230, 40, 120)


def photo() -> np.ndarray:
    """Return a public photograph with a sign, a turned label and a plate in it, uint8 sRGB."""
    image = data.astronaut().copy()
    sign = Image.new("RGB", (210, 46), (20, 80, 160))
    ImageDraw.Draw(sign).text((10, 4), "Harbour Street", fill="white", font=ImageFont.load_default(28))
    image[12:58, 290:500] = np.asarray(sign)
    label = Image.new("RGB", (130, 30), (245, 240, 225))
    ImageDraw.Draw(label).text((8, 3), "Jane Miller", fill=(20, 20, 20), font=ImageFont.load_default(20))
    turned = np.asarray(label.rotate(35, expand=True, fillcolor=(0, 0, 0)))
    part = image[80 : 80 + turned.shape[0], 10 : 10 + turned.shape[1]]
    part[:] = np.where(turned.max(axis=2, keepdims=True) > 0, turned, part)
    plate = cv2.resize(plate_face("KX 90 RTM"), (150, 33), interpolation=cv2.INTER_AREA)
    image[460:493, 20:170] = plate
    return image


def framed(image: np.ndarray, regions: str) -> np.ndarray:
    shown = Image.fromarray(image)
    for region in dpveil.plan(image, "fill", regions=regions).regions:
        box = region.box
        ImageDraw.Draw(shown).rectangle(
            (box.x, box.y, box.x + box.w - 1, box.y + box.h - 1), outline=FRAME, width=3
        )
    return np.asarray(shown)


def main() -> None:
    image = photo()
    released = dpveil.obfuscate(image, "fill", level=128, regions="text").image
    panels = [framed(image, "text"), released, framed(image, "plates")]
    room = np.full((image.shape[0], 8, 3), 255, np.uint8)
    sheet = np.hstack([panels[0], room, panels[1], room, panels[2]])
    small = Image.fromarray(sheet).resize(
        (sheet.shape[1] * 3 // 4, sheet.shape[0] * 3 // 4), Image.Resampling.LANCZOS
    )
    small.quantize(128).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
