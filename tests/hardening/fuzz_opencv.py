"""Change networks for YuNet at random and open them as users do: this process must go on.

    python tests/hardening/fuzz_opencv.py --files 5000 [--first 0]

A file may be accepted, or refused with an error of dpveil's in one
line; any other error is a finding, and so is the end of this process. How often the process that reads it
ended instead is counted.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
from fuzzing import Try, main

from dpveil.errors import DPVeilError
from dpveil.regions.detectors.table import YuNet
from tiny_onnx import yunet

NETWORKS = ((YuNet, yunet()),)


def changed(contents: bytes, dice: random.Random) -> bytes:
    """Return a file with other bytes."""
    data = bytearray(contents)
    for _ in range(dice.choice([1, 1, 2, 3, 8])):
        places = [place for place, byte in enumerate(data) if byte] or [0]  # most weights are 0
        at, kind = dice.choice(places), dice.randrange(6)
        if kind < 2:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            data[at] = dice.choice([0, 1, 127, 128, 255])
        elif kind == 3:
            del data[at : at + dice.choice([1, 2, 8, 64])]
        elif kind == 4:
            data[at:at] = data[at : at + dice.choice([1, 2, 8, 64])]
        else:
            data = data[: max(2, at)] if dice.random() < 0.1 else data
    return bytes(data)


def outcome(index: int, path: Path) -> str:
    """Return what became of a file."""
    dice = random.Random(index)  # noqa: S311  fuzzing
    kind, contents = NETWORKS[index % len(NETWORKS)]
    path.write_bytes(changed(contents, dice))
    try:
        kind(path)
    except DPVeilError as error:
        told = "".join(map(str, [error, error.__cause__, error.__cause__ and error.__cause__.__cause__]))
        ended = "ends the process" in told
        line = "\n" not in str(error)
        return ("refused, another process ended" if ended else "refused") if line else f"finding: {error}"
    except Exception as error:  # noqa: BLE001  which is the finding
        return f"finding: {type(error).__name__} {error}"
    return "accepted"


def begin(folder: Path) -> Try:
    """Return what opens the network of one index."""

    def test(index: int) -> dict[str, str]:
        ended = outcome(index, folder / "net.onnx")
        bad = ended.startswith("finding")
        return {"kind": "yunet", "outcome": "raised" if bad else ended, "finding": ended * bad}

    return test


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, begin))
