"""Change networks for YuNet at random and open them as users do: this process must go on.

    python tests/hardening/fuzz_opencv.py --files 5000 [--first 0]

Every file is a function of its index alone. It may be accepted, or refused with an error of dpveil's in one
line; any other error is a finding, and so is the end of this process. How often the process that reads it
ended instead is counted.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from dpveil.errors import DPVeilError
from dpveil.regions.detectors.yunet import YuNet
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    found = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for index in range(asked.first, asked.first + asked.files):
            ended = outcome(index, Path(folder) / "net.onnx")
            found[ended] += 1
            if "ended" in ended or "finding" in ended:
                print(f"{index}: {ended}", flush=True)
    print(dict(found))
    return int(any("finding" in ended for ended in found))


if __name__ == "__main__":
    sys.exit(main())
