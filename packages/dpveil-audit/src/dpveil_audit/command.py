"""`dpveil audit`: does the code keep its promises?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson, Quiet

if TYPE_CHECKING:
    from dpveil_audit import Audited, Report


def command(
    method: Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD",
            help="A method, mechanism, query or sampler, growth, recombination or naive-bayes; default: all.",
        ),
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Draw five times as often.")] = False,
    quiet: Quiet = False,
    json: AsJson = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Repeat an audit; default: secure bits.")
    ] = None,
) -> int:
    """Look for evidence that a release costs more than it says, and kill mutants on the way.

    \b
    Examples:
      dpveil audit
      dpveil audit dp-pix-gaussian
      dpveil audit truncated-laplace

    Ends with 1 when a promise is broken or a mutant survives. Reads no photo and spends nothing.
    """
    from dpveil.cli.progress import bar
    from dpveil_audit.runner import run, steps_of

    with bar(steps_of(method), "auditing", quiet=quiet) as step:
        report = run(method, seed=seed, deep=deep, step=step)
    if json:
        say.document(report.to_json())
    else:
        _tell(report)
    return exits.DONE if report.passed else exits.INCOMPLETE


def _tell(report: Report) -> None:
    for one in report.audited:
        _tell_gates(one)
        _tell_mutants(one)
        say.answer("")
    counts = report.to_json()
    say.answer(
        f"{len(report.audited)} audited, {counts['checks']} checks, {counts['failed']} failed; "
        f"{counts['mutants']} mutants, {counts['survived']} survived"
    )
    chance = f"by chance with probability below {report.false_alarm:.0e}" if report.false_alarm else "never"
    say.answer(f"bits: {report.bits}; a correct method fails {chance}")
    say.answer("every promise held" if report.passed else "NOT PASSED")


def _tell_gates(one: Audited) -> None:
    rows = [("GATE", "RESULT", "CHECKS", "CLOSEST TO ITS LIMIT", "KILLS")]
    for gate in one.gates:
        of_gate = [finding for finding in one.findings if finding.gate == gate]
        worst, broken = one.worst(gate), sum(not finding.passed for finding in of_gate)
        tried = sum(gate in mutant.tried_by for mutant in one.mutants)
        kills = sum(gate in mutant.killed_by for mutant in one.mutants)
        rows.append(
            (
                gate,
                f"{broken} BROKEN" if broken else "kept",
                str(len(of_gate)),
                f"{worst.what}: {worst.value:.3g} of {worst.limit:.3g} {worst.unit}".rstrip(),
                f"{kills} of {tried}" if tried else "-",
            )
        )
    say.answer(f"{one.name}")
    say.table(rows, indent="  ")
    for finding in one.findings:
        if not finding.passed:
            values = f"{finding.value:.6g} {finding.unit}".rstrip() + f", limit {finding.limit:.6g}"
            say.answer(f"  BROKEN {finding.gate}: {finding.what}: {values}, at {finding.case}")


def _tell_mutants(one: Audited) -> None:
    if not one.mutants:
        return
    killed = sum(not mutant.has_survived for mutant in one.mutants)
    say.answer(f"  {killed} of {len(one.mutants)} mutants killed")
    say.table([(m.name, ", ".join(m.killed_by) or "SURVIVED") for m in one.mutants], indent="    ")
