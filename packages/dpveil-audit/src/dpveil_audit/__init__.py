"""Audits of privacy guarantees: exact distributions, goodness of fit, lower bounds, and mutants to reject.

`run` audits one method or sampler, or everything; the families of audits are `runner.FAMILIES`.
"""

from dpveil_audit.engine import Audited, Finding, Mutant, Report
from dpveil_audit.runner import names, run

__all__ = ["Audited", "Finding", "Mutant", "Report", "names", "run"]
