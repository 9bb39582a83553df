"""`dpveil mechanism release`: answers in, responses and their guarantee out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpveil.cli import exits, say
from dpveil.cli.mechanism import options
from dpveil.cli.options import AsJson
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.core.guarantee import Guarantee


def release_command(
    answers: Annotated[list[str], typer.Argument(metavar="ANSWER", help="True answers, one or more.")],
    mechanism: options.Name = None,
    range_: options.Allowed = None,
    gap: options.Gap = None,
    sensitivity: options.Sensitivity = None,
    epsilon: options.Epsilon = None,
    relation: options.RelationOption = None,
    step: options.Step = None,
    json: AsJson = False,
    seed: options.Seed = None,
) -> int:
    """Release one response for every answer, within the range.

    \b
    Examples:
      dpveil mechanism release --mechanism truncated-laplace --range 0: --sensitivity 1 --epsilon 0.5 3.2
      dpveil mechanism release --mechanism laplace --range=-5:5 --sensitivity 1 --epsilon 1 -3 2.5

    Every answer costs epsilon: k answers about the same records cost k times as much. Other people can read
    what you type here, in the shell's history for one: `query` reads a file instead.
    """
    import numpy as np

    from dpveil.noise.bits import kind_of

    for text in answers:
        if text.startswith("-") and not text.lstrip("-+.")[:1].isdigit():
            raise UsageError(f"no such option: {text}", hint="see dpveil mechanism release --help")
    query = {"sensitivity": sensitivity, "epsilon": epsilon, "step": step}
    chosen = options.built(mechanism, range_, gap, relation, **query)
    chosen.prepare()
    bits = options.source(seed)
    responses = chosen.release(np.array(answers, dtype=object), bits).tolist()
    each = chosen.guarantee()
    total, words = total_of(each, len(answers))
    warnings = [] if seed is None else [options.SEEDED]
    if json:
        document: dict[str, Any] = {"responses": responses, "guarantee": total.to_json()}
        if len(answers) > 1:
            document |= {"each": each.to_json(), "composition": words}
        settings = {"mechanism": chosen.name, "parameters": chosen.parameters(), "bits": kind_of(bits)}
        say.document({**document, **settings, "warnings": warnings})
        return exits.DONE
    for response in responses:
        say.answer(f"{response:.15g}")
    say.answer("")
    say.answer(f"guarantee     {total}")
    say.answer(f"neighbours    {total.relation.in_words()}")
    if len(answers) > 1:
        say.answer(f"composition   {words}")
    for entry in total.scope.in_the_clear:
        say.answer(f"in the clear  {entry}")
    for warning in warnings:
        say.note(f"warning: {warning}")
    return exits.DONE


def total_of(each: Guarantee, count: int) -> tuple[Guarantee, str]:
    """Return the composed guarantee of `count` answers about the same records, and the rule in words."""
    from dataclasses import replace
    from fractions import Fraction

    from dpveil.accounting import compose
    from dpveil.core.guarantee import Scope
    from dpveil.core.numbers import show

    if each.kind == "pure":
        total = compose([each] * count)
    else:  # only the user knows the queries' distance, so `words` define d
        total = replace(each, epsilon=(each.epsilon or Fraction(0)) * count)
    if count > 1:
        scope = Scope(f"{count} answers, each {each.scope.covers}", each.scope.in_the_clear)
        total = replace(total, scope=scope)
    one, all_of_them = show(each.epsilon or Fraction(0)), show(total.epsilon or Fraction(0))
    distance = "" if each.kind == "pure" else ", d being the largest distance of any of the answers"
    words = f"{count} answers about the same records, {one} each: epsilon {all_of_them} in total (sequential)"
    return total, words + distance
