"""`dpveil explain`: what a method would promise, before any budget is spent."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.catalogue import latent_mechanisms, methods
from dpveil.cli import say
from dpveil.cli.command import options_of
from dpveil.cli.options import NO_REGIONS, AsJson, Chosen, MaxPixels, Text, takes_method, takes_regions
from dpveil.core.notes import Aside, notes_with_options
from dpveil.core.rationals import show
from dpveil.errors import InvalidParameter
from dpveil.io.reading import read
from dpveil.release.explain import Explanation, explain, explain_largest, percent_above
from dpveil.release.plan import plan, plan_json, size_of
from dpveil.release.words import in_short

if TYPE_CHECKING:
    from dpveil.core.photo import Photo
    from dpveil.mechanisms.method import Method


def methods_command(json: AsJson = False) -> int:
    """List every method and what it promises.

    \b
    Example:
      dpveil methods

    --method NAME --help of `dpveil obfuscate` shows the options of one; --json has sources, too.
    """
    rows, mechanisms = methods(), latent_mechanisms()
    if json:
        say.document({"methods": rows, "latent_mechanisms": mechanisms})
        return 0
    for row in rows:
        say.answer(f"{row['name']:<22}{', '.join(row['kinds']):<25} {row['summary']}")
    say.answer("\nlatent mechanisms, for --method latent --mechanism NAME:" * bool(mechanisms))
    for each in mechanisms:
        say.answer(f"{each['name']:<22}{each['kind']:<25} {each['summary']}")
    return 0


USUAL = "128x128"  # default size for face methods, whose guarantee does not depend on it


@takes_regions
@takes_method
def explain_command(
    context: typer.Context,
    method: Method,
    photo: Annotated[Path | None, typer.Argument(metavar="[PHOTO]", help="A photo to plan for.")] = None,
    regions: Chosen = NO_REGIONS,
    size: Annotated[
        Text,
        typer.Option(
            metavar="WxH", help="Width and height of the region in pixels; not for methods of faces."
        ),
    ] = None,
    channels: Annotated[int, typer.Option(metavar="1|3", help="1 for grey, 3 for colour.")] = 3,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """State what a method would promise for a region of this size, or a photo. Draws and spends nothing.

    \b
    Examples:
      dpveil explain --method dp-pix --epsilon 1 --block 16 --neighbourhood 256 --size 128x128
      dpveil explain group.jpg --method gallery --epsilon 4
      dpveil explain group.jpg
    """
    if photo is not None:
        if size is not None:
            raise InvalidParameter("--size", None, "is not for a photo", hint="leave one of them out")
        _of_photo(context, read(photo, max_pixels=max_pixels), method, regions, json)
        return 0
    for option in regions.given_options:
        raise InvalidParameter(option, None, "is for a photo", hint="name one, or give --size alone")
    faces = method.draws_faces
    width, height = size_of(USUAL if size is None and faces else size)
    if channels not in (1, 3):
        raise InvalidParameter("--channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    explanation = explain(method, height=height, width=width, channels=channels)
    if json:
        say.document(explanation.to_json())
    else:
        _tell(explanation, f"{width}×{height} pixels")
    for text in method.notes:
        say.note(f"warning: {text}")
    return 0


def _of_photo(context: typer.Context, photo: Photo, method: Method, regions: Chosen, json: bool) -> None:
    """Print a photo's plan: every region, the total, the meaning of the largest guarantee, and warnings."""
    planned, options = plan(photo, method, regions=regions.finders([method.regions])), options_of(context)
    quote = planned.quote
    if json or quote is None:
        say.document(plan_json(planned, options))
        return
    for region, each in zip(quote.regions, quote.guarantees, strict=True):
        say.answer(f"{region.in_words()}: {in_short(each, of='')}")
    say.answer(f"total: {in_short(quote.total, of='')} ({quote.strength})")
    say.answer("")
    largest = max(quote.regions, key=lambda region: region.box.w * region.box.h)
    _tell(explain_largest(quote), largest.in_words())
    for text in notes_with_options(planned.warnings, options):
        say.note(text if isinstance(text, Aside) else f"warning: {text}")


def _tell(explanation: Explanation, size: str) -> None:
    guarantee = explanation.guarantee
    faces = explanation.method.draws_faces
    say.answer(f"{explanation.method.name} on {'a face' if faces else size}: {guarantee}")
    if guarantee.formal:
        say.answer(f"neighbours are {guarantee.relation.in_words()}")
    say.answer("")
    say.answer(explanation.sentence)
    say.answer("")
    scale = explanation.noise_scale
    words = f"{scale or 0:,.{1 if (scale or 0) < 100 else 0}f} grey levels on a full block (255 is white)"
    if not faces:
        say.answer(f"noise scale   {'none: levels get no noise' if scale is None else words}")
    if not guarantee.free:
        _tell_bounds(explanation)
    where = " for any two faces, however far apart" if explanation.metric else ""
    for need in explanation.needs:
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in (need.budget or {}).items())
        noise = "" if need.noise_scale is None else f" (noise scale {need.noise_scale:,.4g})"
        told = "not in reach by another budget" if need.budget is None else f"needs {numbers}{noise}"
        say.answer(f"{need.strength:<13} {told}{where}")
    if not guarantee.free:
        say.answer("")
    for entry in guarantee.scope.in_the_clear:
        say.answer(f"not hidden    {entry}")


def _tell_bounds(explanation: Explanation) -> None:
    """Print by how much odds change, and how often guesses are right; if nothing is kept, only that."""
    if explanation.odds is not None:
        factor = show(Fraction(explanation.odds)) if math.isfinite(explanation.odds) else "more than 1e308"
        say.answer(f"odds          change by a factor of at most {factor}")
    elif explanation.guarantee.delta:
        say.answer("odds          no factor holds for every output: delta lets some pass e^epsilon")
    for k, bound in explanation.success_bound.items():
        named = f"the true one of {k:,} candidates"
        say.answer(
            f"success       {named:<32} at most {percent_above(bound):>10}   (guessing: {100 / k:.4g} %)"
        )
    if explanation.metric is None:
        return
    # what ε·d means at several distances; the bounds above are for the largest one
    for one in (*explanation.metric.at, *explanation.metric.people):
        factor = "more than 1e308" if math.isinf(one.factor) else show(Fraction(one.factor))
        whom = "" if one.share is None else f"; {100 * one.share:g} % of pairs of people lie no further apart"
        pair = percent_above(one.success)
        say.answer(f"at d = {one.distance:<7.3g} odds by {factor}, the true one of 2 at most {pair}{whom}")
    for name, epsilon in explanation.metric.epsilon_for.items():
        say.answer(f"{name:<13} between half of all pairs of people: epsilon {epsilon:.4g} or less")
    for sentence in explanation.metric.sentences:
        say.answer(sentence)
