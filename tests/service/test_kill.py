"""Kills of workers and server while clients retry by key: `kill_service.py` makes more."""

from __future__ import annotations

from pathlib import Path

import pytest
import service_client
from kill_service import CLIENTS, EACH, kills


@pytest.mark.slow
def test_killed_services_make_one_release_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(service_client, "REAL", "noting_worker:serve")
    campaign, figures = kills(10, f"sqlite:///{tmp_path}/budget.db", tmp_path, seed=5)
    assert not campaign.findings, "\n".join(campaign.findings)
    assert figures["keys"] == figures["files"] == 10 * CLIENTS * EACH
    assert campaign.answers["RemoteProtocolError"] + campaign.answers["ReadError"] > 0
