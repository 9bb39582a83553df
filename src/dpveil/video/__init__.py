"""Clips: analysed once, each person drawn once, and frames rendered from what was drawn (docs, "Clips").

Its road: `make_plan` (tracks are found, by `tracks`) → `plan` and `quote` (what it costs) → `render_job`
(paid, then drawn by `track_draws`, then shown by `frame_renderer` and written by `writing`) → `certificate`.
"""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.video.make_plan import analyze
    from dpveil.video.plan import VideoPlan, read_plan
    from dpveil.video.render_job import Rendered, render
    from dpveil.video.verification import verify_clip

__all__ = ["Rendered", "VideoPlan", "analyze", "read_plan", "render", "verify_clip"]
__getattr__, __dir__ = lazy(
    __name__,
    {
        "make_plan": "analyze",
        "plan": "VideoPlan read_plan",
        "render_job": "Rendered render",
        "verification": "verify_clip",
    },
)
