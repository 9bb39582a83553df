"""Freed memory is kept: the next array costs no page that the system has to clear."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from dpveil.core.numbers import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
size = 3 << 24
faults(size)
print(faults(size))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_is_kept(kept: bool) -> None:
    call = [sys.executable, "-c", PROGRAM, "kept" if kept else "given back"]
    usual = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    faults = int(subprocess.run(call, env=usual, capture_output=True, check=True).stdout)
    assert faults < 20 if kept else faults >= 20
