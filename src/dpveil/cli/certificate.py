"""`dpveil certificate`: certificates in other forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import Trust
from dpveil.errors import CertificateError, UsageError

certificate_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@certificate_app.callback()
def _root() -> None:
    """Write certificates in other forms.

    \b
    Example:
      dpveil certificate export private.png --registry
    """


@certificate_app.command("export", cls=Command, short_help="Write a certificate in another form.")
def export_command(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A released image, or its certificate.")],
    registry: Annotated[
        bool,
        typer.Option("--registry", help="As a record of the Differential Privacy Deployments Registry."),
    ] = False,
    trust: Trust = None,
) -> int:
    """Write what a certificate says as JSON for others, after verifying it.

    \b
    Examples:
      dpveil certificate export private.png --registry
      dpveil certificate export private.png --registry --trust releases.key.pub

    Without --trust it finds inconsistency, not forgery. Says on stderr which fields a certificate cannot
    fill. Exit code 1: the release does not verify, has no formal guarantee, or nobody of --trust signed it.
    """
    from dpveil.cli.verify import UNTRUSTED_HINT, vouched
    from dpveil.io.names import shown
    from dpveil.release.deployment import TO_FILL, deployment
    from dpveil.release.keys import trusted_keys
    from dpveil.release.verification import verify
    from dpveil.video.verification import is_clip

    if not registry:
        raise UsageError("there is no form to write it in", hint="add --registry")
    if is_clip(release):
        hint = "its own certificate is JSON, too, and states everything"
        raise UsageError(f"{shown(release)} is a clip, and only photos have that form", hint=hint)
    trusted = trusted_keys(trust or None)
    found = verify(release, trust=trusted)
    if found.certificate is None or found.problems:
        raise CertificateError("; ".join(found.problems), hint="export what dpveil verify finds consistent")
    if found.untrusted:
        raise CertificateError(found.untrusted, hint=UNTRUSTED_HINT)
    say.document(deployment(found.certificate))
    for text in found.objections:
        say.note(f"warning: not publishable: {text}")
    say.note(f"to fill in: {', '.join(TO_FILL)}")
    say.note(vouched(trusted))
    return exits.DONE
