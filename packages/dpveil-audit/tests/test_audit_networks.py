"""The audit of `latent` with codecs of networks: what is right passes, faults in the code are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpveil.codecs import UpConv, neural
from dpveil.codecs.neural import EncoderDecoder
from dpveil.faces import Latent
from dpveil.faces.latent import Told
from dpveil.noise.bits import SeededBits
from dpveil_audit.networks import AUDITS, INTACT, MIXED, MUTANTS, NetworkLevel, NetworkVersion

SEED = 20261124


def broken() -> set[str]:
    """Return the gates that reject the method as it is, at its quick settings."""
    entry = AUDITS["latent"]
    checks = entry.checks(entry.levels["quick"], lambda stream: SeededBits(SEED, stream))
    return set(entry.killers(entry.intact, checks))


def test_a_mask_that_is_forgotten_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neural, "shown", lambda side: np.ones((side, side), bool))
    assert "beyond" in broken()


def test_a_code_that_is_not_drawn_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def released(self: Any, crops: Any, bits: Any) -> Any:
        return self._codec.encode(crops), self.told.answers(crops, self._reader, bits)

    monkeypatch.setattr(Latent, "_released", released)
    assert broken() >= {"around", "bound"}


def test_an_answer_without_randomised_response_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Told, "answers", lambda self, crops, model, bits: model.read(crops) if model else {})
    assert broken() == {"bound"}


def test_an_encoder_that_sees_the_whole_batch_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    own = EncoderDecoder._encode
    monkeypatch.setattr(
        EncoderDecoder, "_encode", lambda self, crops: (c := own(self, crops)) - c.mean(axis=0) / 4
    )
    assert broken() >= {"alone"}


def test_a_mixture_that_sees_the_whole_batch_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`upconv` has no encoder network: it mixes people, one linear program for each face."""
    own = UpConv.rows_of
    monkeypatch.setattr(UpConv, "rows_of", lambda self, crops: (r := own(self, crops)) - r.mean(axis=0) / 4)
    assert broken() >= {"alone"}


@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.gates != ("bound",)], ids=lambda one: one.name
)
def test_mutants_of_upconv_die_by_their_gate(mutant: NetworkVersion) -> None:
    level = NetworkLevel((MIXED,))
    found = []
    for version in (INTACT, mutant):
        checks = AUDITS["latent"].checks(level, lambda stream: SeededBits(SEED, stream))
        found.append(set(AUDITS["latent"].killers(version, checks)))
    assert found == [set(), set(mutant.gates)]
