"""python -m dpveil_research NAME [--data DIR] --out DIR: run an experiment, write tables and plots."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from dpveil.errors import DPVeilError, UsageError
from dpveil.io import make_folder, write_together
from dpveil_research import COMPUTED, EXPERIMENTS, TRAINED
from dpveil_research.data import read_pictures
from dpveil_research.grid import differences, rows, run, to_csv
from dpveil_research.plots import draw

SEED = 2021


def reproduce(name: str, data: Path, out: Path, images: int | None = None) -> list[Path]:
    """Run an experiment and return what was written: results.csv, differences.csv and a plot for each figure.

    `data` holds the data set's folder; files in `out` are replaced. Raises `UsageError` and `OutputError`.
    """
    experiment = EXPERIMENTS[name]
    count = experiment.images if images is None else images
    pictures = read_pictures(experiment.dataset, data, count)
    values, seen = run(experiment.settings, pictures, seed=SEED, told=lambda done: _tell(done, count))
    table = rows(values, seen)
    written = [(out / f"{figure.name}.png", draw(figure, table)) for figure in experiment.figures]
    written.append((out / "results.csv", to_csv(table)))
    written.append((out / "differences.csv", to_csv(differences(values, seen, experiment.contrasts))))
    return _write(written, out)


def compute(name: str, out: Path) -> list[Path]:
    """Run an experiment that needs no data and return what was written; files in `out` are replaced."""
    return _write([(out / file, content) for file, content in COMPUTED[name]().items()], out)


def train(name: str, data: Path, out: Path, count: int | None = None) -> list[Path]:
    """Run an experiment that trains codecs and return what was written; files in `out` are replaced."""
    made = TRAINED[name](data, count, _say)
    return _write([(out / file, content) for file, content in made.items()], out)


def _write(files: list[tuple[Path, bytes]], out: Path) -> list[Path]:
    make_folder(out)
    write_together(files, replace=True)
    return [path for path, _ in files]


def _tell(done: int, count: int) -> None:
    _say(f"{done} of {count} photos")


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _run(name: str, data: Path | None, out: Path, images: int | None) -> list[Path]:
    if name in COMPUTED:
        if data or images:
            raise UsageError(f"{name} takes neither --data nor --images", hint="leave them out")
        return compute(name, out)
    if data is None:
        raise UsageError(f"{name} needs --data", hint="the folder that holds the data set's folder")
    if name in TRAINED:
        return train(name, data, out, images)
    return reproduce(name, data, out, images)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, run, and return the exit code."""
    parser = ArgumentParser(
        "python -m dpveil_research",
        description="Run a paper's experiment anew on your copy of its data, and write CSV and plots.",
        epilog="Example: python -m dpveil_research croft-2022 --data DATA --out reproduction/croft-2022",
    )
    parser.add_argument(
        "name", choices=sorted({**EXPERIMENTS, **COMPUTED, **TRAINED}), help="the paper or question"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help=f"the folder that holds the data set's folder; not for {', '.join(COMPUTED)}",
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write; files there are replaced")
    parser.add_argument(
        "--images",
        type=int,
        help="how many photos (faceidp: pairs); default: as docs/reproduction.md says",
    )
    given = parser.parse_args(arguments)
    try:
        if given.images is not None and given.images < 1:
            raise UsageError(f"--images {given.images} is not above 0", hint="such as 20")
        for path in _run(given.name, given.data, given.out, given.images):
            sys.stdout.write(f"wrote {path}\n")
    except DPVeilError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
