"""python -m dpveil_research [NAME...] [--data DIR] --out DIR: run experiments, write tables and plots."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from dpveil.errors import DPVeilError, UsageError
from dpveil.io.writing import make_folder, write_together
from dpveil_research import (
    croft_2022,
    croft_2022_expressions,
    croft_2022_faces,
    croft_2022_networks,
    croft_pixels,
    croft_thesis_5,
    croft_thesis_6,
    errata_e1,
    faceidp,
    faceidp_faces,
    ksame,
    li_clifton_gan,
    naive_bayes,
    reilly_fan_2021,
    reilly_fan_risk,
)
from dpveil_research.grid import Grid, measure

GRIDS: Final[dict[str, Grid]] = {
    one.name: one for one in (reilly_fan_2021.GRID, reilly_fan_2021.IRIS, croft_2022.GRID)
}
"""Experiments of settings × photos of one data set, all run by `grid.measure`."""

Files = dict[str, bytes]
ON_DATA: Final[dict[str, Callable[..., Files]]] = {
    **{name: partial(measure, grid) for name, grid in GRIDS.items() if name != reilly_fan_2021.IRIS.name},
    "naive-bayes": naive_bayes.make,
    "reilly-fan-2021-risk": reilly_fan_risk.make,
    "faceidp": faceidp.make,
    "li-clifton-2021-gan": li_clifton_gan.make,
    "croft-2022-ksame": ksame.make,
    "croft-2022-faces": croft_2022_faces.make,
    "croft-2022-networks": croft_2022_networks.make,
    "croft-thesis-6": croft_thesis_6.make,
    "croft-thesis-6-pixels": partial(croft_pixels.make, croft_pixels.THESIS),
    "croft-2022-risk": partial(croft_pixels.make, croft_pixels.PAPER),
}
"""Functions of (folder of data sets, count, progress callback) that return files by name.

The count is of photos, pairs, people or splits; None is the experiment's own default.
"""

DRAWN: Final[dict[str, Callable[..., Files]]] = {
    reilly_fan_2021.IRIS.name: partial(measure, reilly_fan_2021.IRIS, Path()),
    "croft-2022-expressions": croft_2022_expressions.make,
}
"""Functions of (count, progress callback) of what dpveil draws."""

COMPUTED: Final[dict[str, Callable[..., Files]]] = {
    "croft-thesis-5": croft_thesis_5.make,
    "errata-e1": errata_e1.make,
    "faceidp-faces": faceidp_faces.make,
}
"""Experiments without data."""

OWN: Final = {
    "reilly-fan-2021-iris": "CASIA-Iris (figures 3, 7)",
    "croft-2022": "FaceScrub (figures 12, 14, 16, 17)",
    "croft-2022-risk": "FaceScrub (figure 15)",
    "croft-2022-expressions": "RaFD or KDEF (figures 8, 9)",
    "croft-2022-faces": "RaFD or KDEF (figures 5, 7, 10, 11)",
    "croft-2022-networks": "any faces (figures 5 and 15, networks)",
    "croft-2022-ksame": "RaFD or KDEF (the same in eigenfaces)",
    "croft-thesis-6": "FaceScrub (figures 6.14 to 6.17)",
    "croft-thesis-6-pixels": "any faces (figures 6.18 to 6.20)",
    "faceidp": "PubFig (figures 9, 11, 14)",
    "faceidp-faces": "PubFig (figures 6, 8)",
    "croft-thesis-5": "a census file (figures 5.13, 5.14)",
}
"""Experiments that take a data set of the user's, with --own, and the paper's one."""

NAMES: Final = (*ON_DATA, *DRAWN, *COMPUTED)


def run(
    name: str, data: Path | None, out: Path, count: int | None = None, own: Path | None = None
) -> list[Path]:
    """Run an experiment, write its files to `out`/NAME, and return their paths.

    `own` is a data set of the user's in place of the experiment's. Files that are there are replaced.

    Raises `UsageError` if its data are missing, and `OutputError`.
    """
    given = {} if own is None else {"own": own}
    if own is not None and (name not in OWN or not own.exists()):
        raise UsageError(f"{name} takes no --own {own}", hint=OWN.get(name, f"these do: {', '.join(OWN)}"))
    if name in COMPUTED:
        files = COMPUTED[name](**given)
    elif name in DRAWN:
        files = DRAWN[name](count, _say, **given)
    elif (folder := data or own) is None:
        raise UsageError(f"{name} needs --data", hint="the folder that holds your copies of the data sets")
    else:
        files = ON_DATA[name](folder, count, _say, **given)
    make_folder(out / name)
    written = [(out / name / file, content) for file, content in files.items()]
    write_together(written, replace=True)
    return [path for path, _ in written]


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(
        "python -m dpveil_research",
        description="Run the papers' experiments anew on your copy of their data, and write CSV and plots.",
        epilog="Example: python -m dpveil_research croft-2022 --data DATA --out reproduction",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all of them")
    add("--data", type=Path, help=f"the folder of your data sets; not for {', '.join((*DRAWN, *COMPUTED))}")
    add("--out", type=Path, required=True, help="gets a folder for each; files there are replaced")
    add("--count", type=int, help="how many photos, pairs, people or splits; default: as the pages say")
    takes = ", ".join(f"{name}: {set_of}" for name, set_of in OWN.items())
    add("--own", type=Path, help=f"a data set of yours in the place of ours: {takes}")
    given = parser.parse_args(arguments)
    try:
        if unknown := [name for name in given.names if name not in NAMES]:
            raise UsageError(f"there is no experiment {unknown[0]}", hint=", ".join(NAMES))
        if given.count is not None and given.count < 1:
            raise UsageError(f"--count {given.count} is not above 0", hint="such as 20")
        for name in given.names or NAMES:
            for path in run(name, given.data, given.out, given.count, given.own):
                sys.stdout.write(f"wrote {path}\n")
    except DPVeilError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
