"""Give rendered heads faces that look like photos: averages of public faces, for non-commercial research.

    python averages.py --to ../../dpveil-faces/src/dpveil_faces/people.safetensors

Needs dpveil and dpveil-faces. Every head without glasses gets several faces of its gender, age and tone, each
of them once, in each of its turns; heads with glasses stay as they were rendered.
"""

from __future__ import annotations

import argparse
import io

import numpy as np
from PIL import Image

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import default_path, save
from dpveil.core.region import Region
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.face_gallery import FRAME, FaceGallery
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import PROTECT_FACE, PROTECTIONS
from dpveil.faces.head_gallery import HeadGallery, default_heads
from dpveil.faces.paint_faces import paint_faces

EACH = 5  # faces for a head, at most
QUALITY = 80
LABELS = ("gender", "age", "beard")
CLASSES = {0: 0, 20: 1, 40: 2}  # the class of a cell's yaw by the yaw of a picture, in degrees


def suitable(heads: HeadGallery, faces: FaceGallery) -> list[tuple[int, int | None]]:
    """Return pairs of a head and a face that suits it, no face twice; None leaves the rendered face."""
    free = (faces.looks("glasses") == 0) & (faces.looks("pose") == VALUES["pose"].index("frontal"))
    pairs: list[tuple[int, int | None]] = [(h, None) for h in np.flatnonzero(heads.looks("glasses"))]
    plain = np.flatnonzero(heads.looks("glasses") == 0)
    for _ in range(EACH):
        for head in plain.tolist():
            fits = free.copy()
            for name in LABELS:
                fits &= faces.looks(name) == heads.looks(name)[head]
            away = np.abs(faces.looks("tone") - heads.looks("tone")[head])
            fits &= away <= 1
            if fits.any():
                face = int(np.flatnonzero(fits)[np.argmin(away[fits])])
                free[face] = False
                pairs.append((head, face))
    return pairs


def picture(heads: HeadGallery, faces: FaceGallery, row: int, face: int) -> bytes:
    """Return one picture of a head with another inner face, as WebP."""
    yaw = int(heads.yaw[row])
    view = heads.view(int(heads.person[row]), yaw)
    kind = PROTECTIONS[PROTECT_FACE]
    shape = kind.stretched(kind.one, CLASSES[yaw])
    pixels = shape.region(view.pose, heads.size, heads.size, masked=True)
    place = Placed(Region(*pixels), between(view.pose, HeadFrame(1), FRAME), FRAME, protect=PROTECT_FACE)
    levels = np.where(view.alpha[..., None] > 0.9, view.levels, fill(view.levels, view.alpha <= 0.9))
    shown = paint_faces(levels.astype(np.uint8), [place], [HeadFace(faces, np.array([face]), 0)], yaw=yaw)
    rgba = np.dstack([shown, np.rint(view.alpha * 255).astype(np.uint8)])
    held = io.BytesIO()
    Image.fromarray(rgba).save(held, "WEBP", method=6, quality=QUALITY, alpha_quality=80)
    return held.getvalue()


def main() -> None:
    """Write the gallery."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True)
    args = parser.parse_args()
    heads, faces = default_heads(), FaceGallery.load(default_path(FaceGallery.name))
    pairs = suitable(heads, faces)
    pictures, masks, person, yaw, points = [], [], [], [], []
    for number, (head, face) in enumerate(pairs):
        for row in np.flatnonzero(heads.person == head).tolist():
            pictures.append(heads.pictures[row] if face is None else picture(heads, faces, row, face))
            masks.append(heads.masks[row])
            person.append(number)
            yaw.append(int(heads.yaw[row]))
            points.append(heads.points[row])
    labels = {name: heads.labels[name][[head for head, _ in pairs]] for name in heads.values}
    smiles = faces.looks("smile")
    labels["smile"] = np.array(
        [heads.labels["smile"][head] if face is None else smiles[face] for head, face in pairs], np.int8
    )
    made = HeadGallery(
        size=heads.size,
        pictures=tuple(pictures),
        masks=tuple(masks),
        person=np.array(person),
        yaw=np.array(yaw),
        points=np.array(points, np.float32),
        labels=labels,
        values=heads.values,
        card=Card(
            "heads",
            "Inner faces: averages of photos of UTKFace (gallery.safetensors). All else: rendered heads.",
            faces.card.terms,
            0,
            {"people": len(pairs), "pictures": len(pictures), "heads": heads.digest, "faces": faces.digest},
        ),
    )
    print(len(pairs), "people", save(made, args.to, replace=True))


if __name__ == "__main__":
    main()
