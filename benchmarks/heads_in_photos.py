"""Released heads in whole photos: can they be told from real ones, found, measured, and who is it?

Photos of LFW, 250 × 250, the first ones of every second person; attackers have `KNOWN` of each, and `PROBES`
others are named. `told apart` is the accuracy of a classifier (chance 0.5) trained on half of the people and
tried on the other half, in turn, by what it sees: everything, the region's inner part or its rim alone (noise
residuals), looks (gradients and colours), and all of it after a low-pass filter of 2 pixels. Landmark errors
are in units of the distance between the eyes, against the original; a face that is not found counts as lost,
as of the other gender, and as not named. `named` is the share of probes that an attacker names by the face,
by placement (as certificates hold it, and as measured in the release), by the context outside of the
regions, and by all of them; `told` sees no release but is told the gender. Intervals are 95 %, by bootstrap
over people. See `heads_releases`, `heads_classifier` and `heads_attackers`.

    python benchmarks/heads_in_photos.py --cache FOLDER

keeps the releases in FOLDER, which a change of dpveil makes stale: take a new one. `--step 1` takes
everybody, `--settings "none;drawn"` some rows, `--parts` also tells apart releases of which a part is real.
At c722192 the `box` of these photos is painted as before there was a completion network: the releases by
default of 732f054^ are the same, bit for bit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpveil.attacks import real_or_made
from dpveil.attacks.around import outside
from dpveil.attacks.resampling import by_person
from heads_attackers import attacks, measured, placements, told
from heads_classifier import mixed, published
from heads_classifier import seen as seen_in
from heads_releases import SETTINGS, Kept, Look, Shot, looks_of, planned, release, shots
from timing import load_note, report

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_250"
KNOWN, PROBES = 4, 2
Row = dict[str, object]


def row(name: str, taken: Sequence[Shot], folder: Path, *, parts: bool) -> Row:
    """Return the figures of one setting."""
    made = {shot: kept for shot in taken if (kept := release(shot, folder / name, SETTINGS[name]))}
    pairs = list(made.items())
    clean = looks_of(folder / "originals", pairs)
    seen = looks_of(folder / name, pairs, clean)
    plan = planned(taken[0], SETTINGS[name])
    return {
        "setting": name,
        "promise": str(plan.total),
        "people": len({shot.person for shot in taken}),
        "photos": len(taken),
        "not released": len(taken) - len(made),
        **{f"told apart, {key}": value for key, value in classified(pairs, parts=parts).items()},
        **kept_of(pairs, clean, seen),
        **named(pairs, clean, seen, taken),
    }


def classified(pairs: Sequence[tuple[Shot, Kept]], *, parts: bool) -> dict[str, str]:
    """Return the accuracies of the classifiers, and which one is the best; with `parts`, also of mixtures."""
    people, found = [shot.person for shot, _ in pairs], {}
    real = [_seen(shot.image, kept) for shot, kept in pairs]
    made = [_seen(kept.image, kept) for _, kept in pairs]
    for name in real[0]:
        found[name] = _told([one[name] for one in real], [one[name] for one in made], people)
    if parts:
        every = [mixed(shot.image, kept.image, kept.hidden, kept.oval) for shot, kept in pairs]
        for name in every[0]:
            own = [_seen(one[name], kept) for one, (_, kept) in zip(every, pairs, strict=True)]
            found[name] = _told(
                [one["everything"] for one in real], [one["everything"] for one in own], people
            )
    return found


def _seen(image: np.ndarray, kept: Kept) -> dict[str, np.ndarray]:
    return seen_in(published(image, kept.hidden, kept.facts["box"]))


def _told(real: list[np.ndarray], made: list[np.ndarray], people: list[str]) -> str:
    one = real_or_made(np.stack(real), np.stack(made), people)
    return f"{share(one.rate, one.interval())} {one.kind}"


def kept_of(pairs: Sequence[tuple[Shot, Kept]], clean: Sequence[Look], seen: Sequence[Look]) -> Row:
    """Return detection, landmark error, gender and yaw, of all photos whose original shows a face."""
    both = [
        (shot.person, real, made)
        for (shot, _), real, made in zip(pairs, clean, seen, strict=True)
        if np.isfinite(real.box).all()
    ]
    people = [person for person, _, _ in both]
    there = np.array([np.isfinite(made.box).all() for _, _, made in both], float)
    errors = np.array([_error(real.points, made.points) for _, real, made in both])
    same = np.array([real.gender == made.gender >= 0 for _, real, made in both], float)
    turns = np.degrees([abs(real.yaw - made.yaw) for _, real, made in both])
    return {
        "face found": _mean(there, people),
        "landmark error, median": f"{np.nanmedian(errors):.3f}",
        "landmark error, nine tenths": f"{np.nanquantile(errors, 0.9):.3f}",
        "landmarks lost": int(np.isnan(errors).sum()),
        "gender kept": _mean(same, people),
        "yaw error, median": f"{np.nanmedian(turns):.1f}°",
        "yaw, correlation": f"{_correlation(both):.2f}",
    }


def _error(real: np.ndarray, made: np.ndarray) -> float:
    eyes = real[:2].mean(axis=0) - real[2:4].mean(axis=0)
    return float(np.hypot(*(real - made).T).mean() / np.hypot(*eyes))


def _correlation(both: Sequence[tuple[str, Look, Look]]) -> float:
    turns = np.array([(real.yaw, made.yaw) for _, real, made in both])
    turns = turns[np.isfinite(turns).all(axis=1)]
    return float(np.corrcoef(turns.T)[0, 1])


def named(
    pairs: Sequence[tuple[Shot, Kept]], clean: Sequence[Look], seen: Sequence[Look], taken: Sequence[Shot]
) -> Row:
    """Return the rates of attackers; photos that were not released count as not named."""
    known = np.array([shot.known for shot, _ in pairs])
    people = [shot.person for shot, _ in pairs]
    owners, probed = ([p for p, k in zip(people, known, strict=True) if k == side] for side in (True, False))
    of_clean = {
        "face": np.stack([look.embedding for look in clean]),
        "placement, measured": np.stack([measured(look) for look in clean]),
    }
    of_made = {
        "face": np.stack([look.embedding for look in seen]),
        "placement, certified": np.stack([placements(kept) for _, kept in pairs]),
        "placement, measured": np.stack([measured(look) for look in seen]),
    }
    around = [outside(kept.image, kept.hidden) for _, kept in pairs]
    of_made |= {f"context, {kind}": np.stack([one[kind] for one in around]) for kind in around[0]}
    sides = [{name: part[side] for name, part in both.items()} for both, side in
             ((of_clean, known), (of_made, known), (of_made, ~known))]  # fmt: skip
    found = attacks(*sides, owners, probed)
    lost = sum(not shot.known for shot in taken) - len(probed)
    part = len(probed) / (len(probed) + lost)
    best = max(found, key=lambda name: found[name].rate)
    rows: Row = {f"named by {n}": share(part * a.rate, a.interval()) for n, a in found.items()}
    looks = [[look for look, k in zip(clean, known, strict=True) if k == side] for side in (True, False)]
    gender = told(looks[0], owners, looks[1], probed)
    return rows | {
        "strongest": f"{share(part * found[best].rate, found[best].interval())}: {best}",
        "told the gender alone": share(gender.rate, gender.interval()),
        "chance": round(found[best].chance, 4),
    }


def unprotected(taken: Sequence[Shot], folder: Path) -> str:
    """Return what the attackers name in the originals, with nothing hidden, as a sentence."""
    pairs = [(shot, Kept(shot.path, {})) for shot in taken]
    faces = np.stack([look.embedding for look in looks_of(folder / "originals", pairs)])
    around = [outside(shot.image, np.zeros(shot.image.shape[:2], np.bool_)) for shot in taken]
    seen = {"face": faces} | {f"context, {k}": np.stack([one[k] for one in around]) for k in around[0]}
    known = np.array([shot.known for shot in taken])
    owners, people = ([s.person for s in taken if s.known == side] for side in (True, False))
    sides = [{name: part[side] for name, part in seen.items()} for side in (known, ~known)]
    found = attacks({}, *sides, owners, people)
    face, context = (share(found[name].rate, found[name].interval()) for name in ("face", "context"))
    return f"Of the originals the same attackers name {face} by the face and {context} by context."


def _mean(values: np.ndarray, people: list[str]) -> str:
    return share(float(values.mean()), by_person(values, people, draws=2000, level=0.95, seed=0))


def share(rate: float, ends: tuple[float, float]) -> str:
    """Return a rate and its interval in words."""
    return f"{rate:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--settings", default=";".join(SETTINGS))
    parser.add_argument("--name", default="heads_in_photos")
    parser.add_argument("--parts", action="store_true", help="releases of which a part is real, too")
    asked = parser.parse_args()
    if not DATA.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    taken, rows = shots(DATA, asked.step, KNOWN, PROBES), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.cache or Path(temporary)
        for name in asked.settings.split(";"):
            rows.append(row(name, taken, folder, parts=asked.parts))
            print(rows[-1], file=sys.stderr)
        report(asked.name, rows, notes=(unprotected(taken, folder), load_note()))


if __name__ == "__main__":
    main()
