"""Rows of results: means over photos with intervals clustered by person, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float64
from scipy.stats import t

LEVEL = 0.95  # confidence level


def clustered_mean(values: Float64[np.ndarray, " n"], people: Sequence[str]) -> tuple[float, float, float]:
    """Return the mean of n photos and the ends of its 95 % interval, clustered by person.

    With deviations summed for each of G people to r_g, the variance of the mean is G/(G - 1)·Σ r_g²/n², and
    the interval is Student's with G - 1 degrees of freedom (the linearised variance of cluster samples). With
    one photo per person it is the usual interval; with a single person it is nan.

    >>> [round(number, 3) for number in clustered_mean(np.array([1.0, 2.0, 3.0]), ["a", "b", "c"])]
    [2.0, -0.484, 4.484]
    """
    mean = float(values.mean())
    _, person = np.unique(np.asarray(people), return_inverse=True)
    sums = np.bincount(person, weights=values - mean)
    if len(sums) < 2:
        return mean, float("nan"), float("nan")
    variance = len(sums) / (len(sums) - 1) * float(sums @ sums) / len(values) ** 2
    reach = float(t.ppf((1 + LEVEL) / 2, len(sums) - 1)) * variance**0.5
    return mean, mean - reach, mean + reach


def clustered_share(values: Float64[np.ndarray, " n"], people: Sequence[str]) -> tuple[float, float, float]:
    """Return `clustered_mean` of shares between 0 and 1, with the interval cut to [0, 1].

    If all shares are 0, or all are 1, the inner end is that of Clopper and Pearson with one trial per person.

    >>> [round(number, 3) for number in clustered_share(np.ones(6), list("abcdef"))]
    [1.0, 0.541, 1.0]
    """
    mean, low, high = clustered_mean(values, people)
    inner = ((1 - LEVEL) / 2) ** (1 / len(set(people)))
    if mean in (0, 1):
        return mean, mean * inner, 1 - (1 - mean) * inner
    return mean, float(np.maximum(low, 0)), float(np.minimum(high, 1))


Row = dict[str, str]


def columns(measure: str) -> tuple[str, str, str]:
    return measure, f"{measure}_low", f"{measure}_high"


R = TypeVar("R", bound=Mapping[str, str])


def where(rows: Sequence[R], **wanted: str) -> list[R]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def estimate(measure: str, numbers: Sequence[float], form: str = ".6g") -> Row:
    """Return a mean and both ends of its interval as columns.

    >>> estimate("ssim", (0.5, 0.25, 0.75))
    {'ssim': '0.5', 'ssim_low': '0.25', 'ssim_high': '0.75'}
    """
    return {name: f"{value:{form}}" for name, value in zip(columns(measure), numbers, strict=True)}


def to_csv(table: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode()
