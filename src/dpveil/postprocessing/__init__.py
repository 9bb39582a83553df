"""Steps that change the released pixels of a region, and so no guarantee: `steps` has all of them."""

from dpveil.postprocessing.steps import Step, opens, parse, parse_all, step_from_certificate

__all__ = ["Step", "opens", "parse", "parse_all", "step_from_certificate"]
