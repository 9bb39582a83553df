"""A short run of the fuzzer (`make fuzz` feeds 100 000 files)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzz import GIVE_BACK, SPARE, Spy, fuzz
from fuzz_seeds import seeds
from PIL import AvifImagePlugin, Image

import dpveil
from dpveil import processes

FILES = 300
HEIGHT, WIDTH = 1000, 1500
BOUND = 8
"""Bytes of memory for each declared pixel and channel: a limit of issue 3."""


def test_damaged_photos_are_read_or_refused():
    tally = fuzz("photos", FILES)
    assert [(entry["index"], entry["finding"]) for entry in tally.findings] == []
    assert tally.counts.total() == FILES
    assert {kind for kind, _ in tally.counts} == {name.split()[0] for name in seeds()}
    assert tally.of("released") > FILES // 20
    assert tally.of("refused") > FILES // 4


KINDS = {
    "colour.png": {},
    "transparent.png": {"mode": "RGBA"},
    "palette.png": {"mode": "P"},
    "grey.png": {"mode": "L"},
    "colour.jpg": {"quality": 90},
    "progressive.jpg": {"quality": 90, "progressive": True},
    "print.jpg": {"mode": "CMYK"},
    "lossy.webp": {"quality": 80, "method": 0},
    "lossless.webp": {"lossless": True, "method": 0},
    "plain.bmp": {},
    "plain.tiff": {},
    "plain.gif": {"mode": "P"},
    "plain.ppm": {},
    "colour.avif": {"speed": 10},
    "packed.tiff": {"compression": "tiff_adobe_deflate"},
}


def save(path, image, mode="RGB", **options):
    image.convert(mode).save(path, **options)
    return path


def measure(folder):
    """Print how much memory reading a file of each kind takes beyond what is there, and what it declares."""
    processes.confined = True  # every decoder runs here, where it is measured
    levels = np.indices((HEIGHT, WIDTH)).sum(axis=0)[..., None] * np.array([1, 2, 3]) % 256
    image = Image.fromarray(levels.astype(np.uint8))
    small = image.crop((0, 0, 16, 16))
    files = [save(folder / name, image, **options) for name, options in KINDS.items()]
    for name, options in KINDS.items():  # decoders and their tables are nobody's memory
        dpveil.read(save(folder / f"small-{name}", small, **options))
    del levels, image
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each thread, one for each core, would reserve a stack
    print(json.dumps({path.name: apart(path) for path in files}))


def apart(path):
    """Read a file in a process of its own: return how far its addresses grew, what it declared, and its size.

    At a fork the peak of the address space starts anew. Unlike the resident set, it is what was asked for:
    other processes that take or give back memory, and the kernel's estimates, do not change it.
    """
    answers, answer = os.pipe()
    if not os.fork():
        spy = Spy()
        before = addresses(b"VmSize")
        kept = dpveil.read(path).image.nbytes
        told = [addresses(b"VmPeak") - before, spy.pixels * spy.channels, kept]
        os.write(answer, json.dumps(told).encode())
        os._exit(0)
    os.close(answer)
    with os.fdopen(answers) as pipe:
        told = json.load(pipe)
    os.wait()
    return told


def addresses(name):
    status = Path("/proc/self/status").read_bytes()
    return int(status.split(name + b":", 1)[1].split(None, 1)[0]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures memory through /proc")
def test_a_photo_takes_at_most_eight_bytes_for_each_sample_that_it_declares(tmp_path):
    """In photos this large, what any file may cost at first (SPARE) is a small part of what is allowed."""
    command = [sys.executable, __file__, str(tmp_path)]
    environment = os.environ | GIVE_BACK | {"MALLOC_ARENA_MAX": "1"}  # arenas reserve more than they use
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    assert set(found) == set(KINDS)
    for name, (grown, declared, kept) in found.items():
        channels = 1 if name.startswith("grey") else 3
        assert kept == WIDTH * HEIGHT * channels
        assert declared >= WIDTH * HEIGHT
        assert kept <= grown <= BOUND * max(declared, kept) + SPARE, name


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
