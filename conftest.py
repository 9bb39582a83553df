"""What the tests of every package get: no network, a home of its own, and the shared data where present."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jaxtyping
import pytest

ROOT = Path(__file__).parent
collect_ignore_glob = ["tests/fixtures/*"]
SHARED = ROOT.parent / "shared" / "data"
MEMORY_DISK, ROOM = Path("/dev/shm"), 2 << 30  # noqa: S108  only new folders of our own are used

# Thousands of files are flushed to the disk, which takes no time in memory; workers inherit the choice.
if "TMPDIR" not in os.environ and MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > ROOM:
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY_DISK), None

# Before numba is imported: compiled code of a test run stays with the test run's other leftovers.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "numba"))

# As root, pgserver makes a user for its server, by a program that is not on everybody's path.
os.environ["PATH"] += f"{os.pathsep}/usr/sbin"

# The same examples every time, on however slow a machine; half as many as usual find what all do.
hypothesis.settings.register_profile("dpveil", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("dpveil")

# Hardly any object that collecting makes can be freed, and looking for those takes almost half of its time.
gc.disable()

# Shells start background jobs with Ctrl-C ignored, and the programs that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Look for doctests in what is shipped and has any: looking imports a module, and all that it imports."""
    found = yield
    if "src" in file_path.parts[len(ROOT.parts) :] and b">>> " in file_path.read_bytes():
        return found
    return [one for one in found if type(one).__name__ != "DoctestModule"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow all cases but each n-th of the tests in `tests/slow.txt`; with 0, all of them.

    They take long, and one case finds what the others do, or nearly so; `make slow` runs all.
    """
    lines = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    every = {test: int(count) for test, _, count in (line.partition(" ") for line in lines)}
    met = Counter[str]()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test in every and (every[test] == 0 or met[test] % every[test]):
            item.add_marker("slow")
        met[test] += 1


SHAPES = ("io", "regions", "faces")
"""The folders of tests in which the shapes of arrays are checked."""
CHECKED: set[str] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check shapes in the first case of each test of `SHAPES`: where it is every case, that takes a sixth."""
    test = item.nodeid.partition("[")[0]
    checked = test.startswith(tuple(f"tests/{folder}/" for folder in SHAPES)) and test not in CHECKED
    jaxtyping.config.update("jaxtyping_disable", not checked)
    CHECKED.add(test)


def pytest_collection_finish() -> None:
    """Free memory as usual from here on; what was collected stays."""
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data sets (faces, LFW, UTKFace, UCI), which may only be read."""
    if not SHARED.is_dir():
        pytest.skip("needs the shared data sets in ../shared/data, which are not part of the project")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Keep tests, and the commands that they start, away from the user's own settings and caches."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(home))
        for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTHONUNBUFFERED", "TERM"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Any:
    """Refuse connections to other machines."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"a test tried to reach {address[0]}: nothing here may use the network")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_children() -> Iterator[None]:
    """Start no Python for children that dpveil runs in processes of their own, where the system can."""
    if not sys.platform.startswith("linux"):
        yield
        return
    from forked_children import forked_children

    with forked_children():
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What runs the command line in processes that may be killed (for tests/hardening)."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs fork, and /proc to know which files were flushed")
    from hardening_runs import Runs

    with Runs(tmp_path_factory.mktemp("runs")) as server:
        yield server


@pytest.fixture(scope="session")
def crops() -> Any:
    """Made faces to train codecs on (for tests/codecs)."""
    return _only_read(90, seed=1)


@pytest.fixture(scope="session")
def other_crops() -> Any:
    """Made faces that no codec was trained on."""
    return _only_read(30, seed=2)


def _only_read(count: int, seed: int) -> Any:
    from made_faces import faces

    made = faces(count, seed=seed)
    made.flags.writeable = False
    return made


@pytest.fixture(scope="session")
def codecs() -> Any:
    """Every codec, trained on the same made faces in colour and grey, by name and channels."""
    from made_faces import Trained

    return Trained()


@pytest.fixture(autouse=True)
def _render_the_first_plot(request: pytest.FixtureRequest) -> None:
    """Rendering took most of the time of the papers' figures: each process renders its first plot alone."""
    if "dpveil-research" not in request.path.parts:
        return
    from matplotlib.figure import Figure
    from PIL import Image

    save = Figure.savefig

    def savefig(canvas: Figure, file: Any, **options: Any) -> None:
        if RENDERED:
            Image.new("L", (8, 8)).save(file, "PNG")
        else:
            RENDERED.append(canvas)
            save(canvas, file, **options)

    request.getfixturevalue("monkeypatch").setattr(Figure, "savefig", savefig)


RENDERED: list[Any] = []
