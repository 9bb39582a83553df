"""Damaged uploads: `fuzz_service.py` sends more."""

from __future__ import annotations

import pytest
from fuzz_service import fuzz


@pytest.mark.slow
def test_ten_thousand_damaged_uploads_have_an_answer_below_500() -> None:
    found = fuzz(10_000)
    assert not found.findings, "\n".join(found.findings)
    assert found.answers.total() == 10_000
    assert len({kind.partition(" ")[0] for kind in found.answers}) >= 3
    held = ("upload_bytes", "result_bytes", "busy", "waiting", "workers_replaced")
    assert not any(found.figures[f"dpveil_{name}"] for name in held), found.figures
    assert max(found.memory[5:]) < 1.5 * max(found.memory[:5]), found.memory
