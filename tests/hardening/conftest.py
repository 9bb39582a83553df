"""One server of runs for all tests of this folder, and a disk where flushing costs nothing."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hardening_runs import Runs

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  only a new folder of our own is used


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """What runs the command line in a process that may be killed."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs fork, and /proc to know which files were flushed")
    with Runs(tmp_path_factory.mktemp("runs")) as server:
        yield server


@pytest.fixture
def place() -> Iterator[Path]:
    """A new folder, in memory where the system has such a disk: these tests flush thousands of files."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield Path(folder)
