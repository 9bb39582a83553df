"""python -m dpveil_research [NAME...] [--data DIR] --out DIR: run experiments, write tables and plots."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from dpveil.errors import DPVeilError, UsageError
from dpveil.io import make_folder, write_together
from dpveil_research.experiments import COMPUTED, NAMES, ON_DATA
from dpveil_research.provenance import FILE, provenance


def run(name: str, data: Path | None, out: Path, count: int | None = None) -> list[Path]:
    """Run an experiment, write its files to `out`/NAME, and return their paths.

    Files that are there are replaced; one of them says how the others were made.

    Raises `UsageError` if its data are missing, and `OutputError`.
    """
    began = process_time()
    if name in COMPUTED:
        files = COMPUTED[name]()
    elif data is None:
        raise UsageError(f"{name} needs --data", hint="the folder that holds your copies of the data sets")
    else:
        files = ON_DATA[name](data, count, _say)
    told = provenance(name, count, on_data=name not in COMPUTED, seconds=process_time() - began)
    files = {**files, FILE: told}
    folder = out / name
    make_folder(folder)
    written = [(folder / file, content) for file, content in files.items()]
    write_together(written, replace=True)
    return [path for path, _ in written]


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, and return the exit code."""
    parser = ArgumentParser(
        "python -m dpveil_research",
        description="Run the papers' experiments anew on your copy of their data, and write CSV and plots.",
        epilog="Example: python -m dpveil_research croft-2022 --data DATA --out reproduction",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all of them")
    parser.add_argument(
        "--data", type=Path, help=f"the folder of your data sets; not for {', '.join(COMPUTED)}"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="gets a folder for each; files there are replaced"
    )
    parser.add_argument(
        "--count", type=int, help="how many photos, pairs, people or splits; default: as the pages say"
    )
    given = parser.parse_args(arguments)
    try:
        unknown = [name for name in given.names if name not in NAMES]
        if unknown:
            raise UsageError(f"there is no experiment {unknown[0]}", hint=", ".join(NAMES))
        if given.count is not None and given.count < 1:
            raise UsageError(f"--count {given.count} is not above 0", hint="such as 20")
        for name in given.names or NAMES:
            for path in run(name, given.data, given.out, given.count):
                sys.stdout.write(f"wrote {path}\n")
    except DPVeilError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
