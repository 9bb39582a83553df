"""The network that reads around a face: what it refuses, and what it sees of a real photo."""

from __future__ import annotations

import numpy as np
import pytest
from tests.faces.facespace_made import astronaut

import dpveil
from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import installed_path
from dpveil.errors import ModelError
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.surroundings_network import SurroundingsNetwork

CARD = Card("surroundings", "nothing", "none", 0)


@pytest.mark.parametrize("values", [[], [["gender", ["female", "male"]]], [["height", ["low", "high"]]]])
def test_other_attributes_are_refused(values):
    with pytest.raises(ModelError):
        SurroundingsNetwork.of_file({"values": values}, {"network": np.zeros(9, np.uint8)}, CARD)


@pytest.mark.skipif(installed_path("surroundings") is None, reason="needs dpveil-faces")
@pytest.mark.parametrize("protect", ["face", "head"])
def test_around_a_woman_a_woman_is_read(monkeypatch, protect):
    seen, person = [], HeadFace.person

    def watched(self, around):
        if around is not None:
            seen.append(self.model.scores(around.picture)[self.model.columns["gender"]])
        return person(self, around)

    monkeypatch.setattr(HeadFace, "person", watched)
    dpveil.obfuscate(astronaut(), "attributes", protect=protect)
    male, female = (VALUES["gender"].index(word) for word in ("male", "female"))
    assert len(seen) == 1
    assert seen[0][female] > seen[0][male]
