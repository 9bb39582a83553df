"""URLs of new ledgers: in an SQLite file, and on a real PostgreSQL server."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server of this worker's own; as root it runs as another user, who cannot enter pytest's folders."""
    pytest.importorskip("psycopg", reason="needs pip install 'dpveil[postgres]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a folder of the desktop when it is imported
        pgserver: Any = pytest.importorskip("pgserver", reason="needs pip install pgserver")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with pgserver.get_server(Path(folder) / "data") as started:
            started.psql(
                "ALTER SYSTEM SET wal_writer_delay = '10s'"
            )  # only what is waited for is flushed soon
            started.psql("SELECT pg_reload_conf()")
            yield started


@pytest.fixture
def server_url(server: Any, request: pytest.FixtureRequest) -> str:
    """The URL of a new database."""
    name = f"d{abs(hash(request.node.nodeid))}"
    server.psql(f"CREATE DATABASE {name}")
    return str(server.get_uri(database=name))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'budget.db'}"
    return str(request.getfixturevalue("server_url"))
