"""The default model of attributes, where the package dpveil-faces is installed."""

from __future__ import annotations

import numpy as np
import pytest
from facespace_made import FACE, astronaut

from dpveil.assets.trained_files import default_path
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import READ, VALUES, AttributeModel
from dpveil.faces.geometry.place import place


@pytest.fixture(scope="module")
def model():
    try:
        return AttributeModel.load(default_path("attributes"))
    except UsageError as error:
        pytest.skip(str(error))


def test_it_is_small_and_its_card_says_where_it_is_from(model):
    path = default_path("attributes")
    assert path.stat().st_size < 3_000_000
    assert dict(model.values) == dict(READ)
    assert "non-commercial" in model.card.terms
    words = path.with_suffix(".card.md").read_text(encoding="utf-8")
    assert model.digest in words


def test_it_reads_a_face_as_people_do_wherever_it_lies_exactly(model):
    photo = Photo(astronaut())
    x, y, w, h = map(int, FACE.split(","))
    boxes = [Box(x, y, w, h), Box(x - 4, y + 3, w, h), Box(x, y - 4, w + 6, h + 6)]
    crops = np.stack([place(photo, box).crop(photo) for box in boxes])
    read = model.read(np.concatenate([crops, crops[:, :, ::-1]]))
    told = {name: [VALUES[name][place] for place in places] for name, places in read.items()}
    assert told["gender"] == ["female"] * 6
    assert told["smile"] == ["yes"] * 6
    assert set(told["age"]) <= {"30-44", "45-59"}  # she was 42
    assert told["glasses"] == told["beard"] == ["no"] * 6
    assert np.array_equal(read["pose"][3:], 2 - read["pose"][:3])
