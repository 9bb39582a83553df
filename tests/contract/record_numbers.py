"""Numbers of record: what calls answer that draw nothing, or under a seed: costs, chances, bounds, answers.

`python tests/contract/record_numbers.py` writes numbers.json anew: read the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("numbers.json")
EXACT: Final = 1e-7  # relative: another processor may differ in the last bits

ANY: Final = ("--epsilon 3", "--epsilon 3 --delta 1e-6", "--rho 0.5", "--epsilon 0.01")
GAUSSIAN: Final = ("--rho 0.5", "--epsilon 3 --delta 1e-6", "--rho 40")
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "dp-pix --block 4 --neighbourhood 9": ANY,
    "dp-pix-gaussian --block 4 --neighbourhood 9": GAUSSIAN,
    "ssim-exponential --block 8": ANY,
    "mse-exponential --block 8 --levels 16": ANY,
    "bit-planes --neighbourhood 9": ANY,
    "bit-planes --wavelet 2 --drop-coarse": ("--epsilon 3", "--rho 0.5"),
    "dct-gaussian --neighbourhood 9 --coefficients 6": GAUSSIAN,
    "dct-gaussian": GAUSSIAN,
    "dp-svd --rank 4": ("--epsilon 3",),
    "dp-samp --clusters 4 --neighbourhood 9": ("--epsilon 3",),
    "dp-samp --clusters 4 --neighbourhood 9 --private-clusters --rate 0.1": ("--epsilon 3",),
    "snow": ("--delta 0.01",),
}
SIZES: Final = ("--size 48x40", "--size 21x33 --channels 1")
FACES: Final = (
    *(
        "gallery --epsilon 4",
        "gallery --epsilon 4 --near 8",
        "attributes",
        "latent --epsilon 40",
        "latent --rho 3",
    ),
    *("attributes --attributes gender=2,age=1", "attributes --attributes gender,smile --epsilon 3"),
)
MECHANISMS: Final = ("laplace", "truncated-laplace", "staircase", "geometric", "explicit-fair", "uniform")
PROGRAMS: Final = ("linear-program-1", "linear-program-2")
QUERIES: Final = ("mean", "sum", "median", "quantile --q 0.3", "standard-deviation")
ATTACKS: Final = ("pixels", "context+pixels")


def calls() -> Iterator[str]:
    """Yield the command lines, without `--json`."""
    for method, budgets in METHODS.items():
        for budget, size in product(budgets, SIZES):
            yield f"explain --method {method} {budget} {size}"
    yield from (f"explain --method {method}" for method in FACES)
    for relation in ("database-record", "any-database"):
        for name in (*MECHANISMS, *PROGRAMS):
            more = f"--mechanism {name} --relation {relation}"
            yield f"mechanism matrix {more} --range 0:6 --sensitivity 1 --epsilon 0.75"
            yield f"mechanism matrix {more} --range=-3:5 --gap 0:2 --sensitivity 2 --step 1 --epsilon 2"
            yield f"mechanism release {more} --range 0:20 --sensitivity 3 --step 0.5 --epsilon 0.4 --seed 5 3"
        for query in QUERIES:
            more = f"--relation {relation} --epsilon 0.8 --seed 5 --range 0:120"
            yield f"mechanism query ages.csv --column age --query {query} {more}"
    for query in ("count --above 30", "histogram --bins 4 --range 0:120"):
        yield f"mechanism query ages.csv --column age --epsilon 2 --seed 5 --query {query}"
    for attack in ATTACKS:
        yield f"evaluate drawn --out {attack} --attack {attack} --people 3 --photos 2 --jobs 1 --epsilon 5"


def numbers(value: Any) -> Any:
    """Return what of an answer is recorded: no sentences, and numbers of nine digits."""
    if isinstance(value, Mapping):
        kept = {key: numbers(item) for key, item in sorted(value.items())}
        return {key: item for key, item in kept.items() if item not in ("", {}, [])}
    if isinstance(value, list):
        return [numbers(item) for item in value]
    if isinstance(value, str):
        return "" if " " in value else value
    return float(f"{value:.9g}") if isinstance(value, float) and math.isfinite(value) else value


def answers() -> dict[str, Any]:
    """Return the exit code and the numbers of every call."""
    from dpveil import cli

    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("ages.csv").write_text("age\n" + "\n".join(str(20 + age) for age in range(30)))
        for call in calls():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                code = cli.run([*call.split(), "--json"])
            found[call] = code or numbers(json.loads(printed.getvalue()))
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two answers are equal, but for the last bits of floats."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=EXACT, abs_tol=1e-12)
    return bool(one == other)


def main() -> None:
    warnings.simplefilter("ignore")
    lines = (f"{json.dumps(call)}: {json.dumps(answer)}" for call, answer in answers().items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
