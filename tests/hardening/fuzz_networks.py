"""Change sound networks at random and check them as files from anybody are: no end of the process, no hang.

    python tests/hardening/fuzz_networks.py --files 100000 [--first 0]

Every network is a function of its index alone. Each is checked in a process of its own, which may end with a
`ModelError` or an accepted network; a signal, another error, or more than `HANG` seconds is a finding.
"""

import argparse
import os
import random
import resource
import signal
import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime  # noqa: F401  loaded once, before processes part

sys.path.insert(0, str(Path(__file__).parent.parent))
from dpveil.assets.network import Network
from dpveil.assets.onnx_files import Array, Graph, Node, read
from dpveil.assets.operators import LISTS, OPERATORS, REAL, TYPES, WHOLE, WORDS
from dpveil.assets.reference import Reference
from dpveil.codecs.kind import CODEC
from dpveil.errors import ModelError
from tiny_onnx import completion, decoder, encoder, in_8_bits, repainter

HANG = 20
"""Seconds for one network."""
OTHER_ERROR = 5
"""Exit code of a process with another error than `ModelError`."""
WHOLES = (-4, -1, 0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 64, 1024, 65_535)
VALUES = {
    1: (0, 1, -1, 1e4),
    10: (0, 1, -1, 1e4),
    2: (0, 1, 128, 255),
    3: (0, 1, -1, 127),
    6: (0, 1, -1, 2, 64, 2**31 - 1),
    7: (0, 1, -1, 2, 64, 2**62),
}
Sound = tuple[Graph, tuple[int, ...], tuple[int, ...]]


def sound() -> list[Sound]:
    """Return networks that are accepted, with the shapes of their inputs and outputs."""
    gan: Any = Reference.of("gan", CODEC).held
    one = np.ones((5, 3, 8, 8), np.float32)
    made = [
        (repainter(), (1, 3, 32, 32), (1, 3, 32, 32)),
        (completion(), (1, 18, 64, 64), (1, 7, 64, 64)),
        (encoder(one, np.zeros(5)), (1, 3, 8, 8), (1, 5)),
        (decoder(one, np.zeros((3, 8, 8))), (1, 5), (1, 3, 8, 8)),
        (in_8_bits(), (1, 3, 64, 64), (1, 3, 64, 64)),
        (in_8_bits("step", "i"), (1, 3, 64, 64), (1, 3, 64, 64)),
        *((it.contents, it.takes, it.gives) for it in (gan.encoder, gan.decoder)),
    ]
    return [(read(contents), takes, gives) for contents, takes, gives in made]


def array(dice: random.Random) -> Array:
    kind = dice.choice([1, 1, 2, 3, 6, 7, 7, 10])
    shape = tuple(dice.choice([1, 1, 2, 3, 4, 8, 32]) for _ in range(dice.randrange(5)))
    return Array(shape, kind, np.full(shape, dice.choice(VALUES[kind]), TYPES[kind]).tobytes())


def attribute(dice: random.Random, name: str) -> Any:
    if name == "value":
        return array(dice)
    if name in REAL:
        return dice.choice([0.0, 1.0, -1.0, 1e30, 1e-30])
    if name in WORDS:
        return dice.choice(list(WORDS[name]))  # type: ignore[call-overload]
    allowed = [value for value in WHOLES if value in WHOLE[name]]
    if name in LISTS:
        return tuple(dice.choice(allowed) for _ in range(dice.choice([0, 1, 2, 2, 4, 4, 8])))
    return dice.choice(allowed)


def attributes(dice: random.Random, operator: str, kept: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of an operator: those that fit of a node before, and others at random."""
    out = {name: value for name, value in kept.items() if name in OPERATORS[operator]}
    for name in sorted(OPERATORS[operator]):
        if name == "value" or dice.random() < 0.5:
            out[name] = attribute(dice, name)
    return out


def changed(dice: random.Random, graph: Graph) -> Graph:
    """Return a network with another operator, constant or connection, or one more node."""
    nodes, arrays = list(graph.nodes), dict(graph.arrays)
    at, kind = dice.randrange(len(nodes)), dice.random()
    node, before = nodes[at], [graph.input.name, *arrays, *(one.output for one in nodes[:at])]
    if kind < 0.3:
        operator = dice.choice([node.operator, dice.choice(sorted(OPERATORS))])
        nodes[at] = replace(node, operator=operator, attributes=attributes(dice, operator, node.attributes))
    elif kind < 0.5:
        arrays[dice.choice(sorted(arrays))] = array(dice)
    elif kind < 0.75:
        inputs = [*node.inputs, dice.choice(["", *before])]
        inputs[dice.randrange(len(inputs))] = inputs[-1]
        nodes[at] = replace(node, inputs=tuple(inputs[: dice.choice([-1, -1, len(inputs)])]))
    else:
        more, name = f"more{len(nodes)}", f"array{len(arrays)}"
        arrays[name], operator = array(dice), dice.choice(sorted(OPERATORS))
        inputs = [dice.choice([*before, name]) for _ in range(dice.choice([1, 1, 2, 2, 3, 4]))]
        nodes[at] = replace(node, inputs=(more, *node.inputs[1:]))
        nodes.insert(at, Node(operator, tuple(inputs), more, attributes(dice, operator, {})))
    return replace(graph, nodes=tuple(nodes), arrays=arrays)


def outcome(contents: bytes, takes: tuple[int, ...], gives: tuple[int, ...]) -> str:
    """Return how a process ended that checks a network."""
    child = os.fork()
    if child == 0:
        signal.alarm(HANG)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        try:
            Network.of(np.frombuffer(contents, np.uint8), takes, gives, "is fuzzed", np.inf)
        except ModelError:
            os._exit(1)
        except BaseException:  # noqa: BLE001  which is the finding
            os._exit(OTHER_ERROR)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {0: "accepted", 1: "refused"}.get(os.WEXITSTATUS(status), "another error")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    cv2.setNumThreads(1)
    networks, found = sound(), Counter[str]()
    for index in range(asked.first, asked.first + asked.files):
        dice = random.Random(index)  # noqa: S311  fuzzing
        graph, takes, gives = dice.choice(networks)
        for _ in range(dice.choice([1, 1, 2, 3])):
            graph = changed(dice, graph)
        ended = outcome(graph.written(takes, gives), takes, gives)
        found[ended] += 1
        if ended not in ("accepted", "refused"):
            print(f"{index}: {ended}", flush=True)
    print(dict(found))
    return int(bool(set(found) - {"accepted", "refused"}))


if __name__ == "__main__":
    sys.exit(main())
