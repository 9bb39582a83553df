"""Compiled code is kept for the sources that it was compiled from: all of them."""

import sys
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest

from dpveil.noise import backend

SCALE = "def scale():\n    return {}\n"
USE = "def use():\n    return scale()\n"


def module(tmp_path, monkeypatch, name, text):
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    made = ModuleType(name)
    made.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, str(path), "exec"), vars(made))  # noqa: S102  a source of our own
    monkeypatch.setattr(backend, "_source", lambda found: Path(found.__file__).read_bytes())
    return made


def test_a_change_in_one_module_is_seen_by_what_another_compiled_from_it(tmp_path, monkeypatch):
    """numba's cache looks at the file of a function alone, and would go on with the former `scale`."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    kept = [module(tmp_path, monkeypatch, "use", USE)]
    for value in (2, 3):
        loops = backend._compile((module(tmp_path, monkeypatch, "scale", SCALE.format(value)), *kept))
        assert loops.use() == value


def test_loops_that_make_arrays_are_refused(tmp_path, monkeypatch):
    """They would need numba's runtime, and with it every call counts references to its arrays."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    text = "import numpy as np\n\ndef fill({}):\n    room[0] = 1.0\n"
    given = backend._compile((module(tmp_path, monkeypatch, "given", text.format("room")),))
    room = np.zeros(1)
    given.fill(room)
    assert room[0] == 1.0
    made = text.format("").replace("    room", "    room = np.zeros(1)\n    room")
    loops = backend._compile((module(tmp_path, monkeypatch, "made", made),))
    with pytest.raises(numba.core.errors.NumbaError):
        loops.fill()


def test_without_a_folder_for_its_cache_numba_compiles_all_the_same(monkeypatch):
    def njit(signature, *, cache=False, **options):
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: (function, signature, options)

    monkeypatch.setattr(numba, "njit", njit)
    assert backend.jit("i8", fastmath=False)(len) == (len, "i8", {"nogil": True, "fastmath": False})
