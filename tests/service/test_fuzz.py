"""Damaged uploads: `fuzz_service.py` sends more."""

from __future__ import annotations

import pytest
from fuzz_service import fuzz


@pytest.mark.slow
def test_ten_thousand_damaged_uploads_have_an_answer_below_500() -> None:
    answers, found, figures = fuzz(10_000)
    assert not found, "\n".join(found)
    assert answers.total() == 10_000
    assert len(answers) >= 3
    assert figures["dpveil_upload_bytes"] == figures["dpveil_busy"] == figures["dpveil_waiting"] == 0
