"""`dpveil audit`: one table or one JSON document, and an exit code that a script can trust."""

import numpy as np
import pytest

from dpveil.cli import run
from dpveil.noise.integer_matrix import IntegerMatrix


@pytest.fixture
def cli(capsys):
    def call(*arguments):
        code = run(arguments)
        return code, *capsys.readouterr()

    return call


def test_a_sampler_passes_and_says_what_was_looked_at(cli):
    code, out, err = cli("audit", "integer-matrix", "--seed", "1")
    assert code == 0
    assert "every promise held" in out
    assert "4 of 4 mutants killed" in out
    assert not err


def test_a_broken_sampler_ends_with_1_and_is_named(cli, monkeypatch):
    monkeypatch.setattr(IntegerMatrix, "sample", lambda self, rows, bits: np.zeros(len(rows), np.int64))
    code, out, _ = cli("audit", "integer-matrix", "--seed", "1")
    assert code == 1
    assert "NOT PASSED" in out
    assert "BROKEN fit" in out
