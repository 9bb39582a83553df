"""Clips: analysed once, each person drawn once, and frames rendered from what was drawn (docs, "Clips")."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.video.analyzing import analyze
    from dpveil.video.plan import VideoPlan, read_plan
    from dpveil.video.rendering import Rendered, render
    from dpveil.video.verification import verify_clip

__all__ = ["Rendered", "VideoPlan", "analyze", "read_plan", "render", "verify_clip"]
__getattr__, __dir__ = lazy(
    __name__,
    {
        "analyzing": "analyze",
        "plan": "VideoPlan read_plan",
        "rendering": "Rendered render",
        "verification": "verify_clip",
    },
)
