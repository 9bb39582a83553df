"""Steps that change the released pixels of a region, and so no guarantee (`steps`)."""

from dpveil.postprocessing.steps import (
    Denoiser,
    GaussianBlur,
    Median,
    NonLocalMeans,
    Step,
    opens,
    parse,
    parse_all,
    step_from_certificate,
)

__all__ = [
    "Denoiser",
    "GaussianBlur",
    "Median",
    "NonLocalMeans",
    "Step",
    "opens",
    "parse",
    "parse_all",
    "step_from_certificate",
]
