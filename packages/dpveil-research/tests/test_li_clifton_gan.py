"""Li & Clifton in the space of networks, on faces of nobody: every line is there, budget buys likeness."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.assets.trained_files import default_path
from dpveil.codecs import load
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.face_gallery import FaceGallery
from dpveil_research import li_clifton_gan as paper
from dpveil_research.faces import Faces, large, seen


@pytest.fixture(scope="module")
def rows():
    pytest.importorskip("dpveil_faces")
    codec, model = load(default_path("gan")), AttributeModel.load(default_path("attributes"))
    faces = seen(FaceGallery.load(default_path("gallery")).faces[:40], codec.canvas[0])
    own = Faces(faces[:4], tuple("abcd"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "EACH", ("1/4", "64"))
        patch.setattr(type(codec), "optimise", lambda self, crops: self.encode(crops))
        others = model.units(large(faces[4:])).astype(np.float64)
        return list(paper.Scene(codec, own, model, others).rows())


def test_budget_buys_likeness_at_every_clip(rows):
    assert len(paper.figures(rows)) == 2
    assert len({(row["series"], row["x"]) for row in rows}) == len(rows)
    value = {
        (row["series"], row["x"]): {m: float(row[m]) for m in ("ssim", "psnr", "frechet")} for row in rows
    }
    for clip in paper.CLIPS:
        low, high = (value[paper.series(paper.ENCODED, clip), x] for x in ("32", "8192"))
        still = value[f"{paper.ENCODED}: {paper.series(paper.CODE, clip)}", ""]
        assert low["ssim"] < high["ssim"] <= still["ssim"] + 0.02
        assert low["psnr"] < high["psnr"] <= still["psnr"] + 0.5
    assert all(np.isfinite(one["frechet"]) for one in value.values())
    guarantees = {(row["x"], row["guarantee"]) for row in rows if row["x"]}
    assert guarantees == {("32", "32-DP, latent-cell"), ("8192", "8192-DP, latent-cell")}
