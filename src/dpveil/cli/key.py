"""`dpveil key`: make the keys that sign certificates, and show whose they are."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import AsJson
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.release.keys import PublicKey, SigningKey


PASSPHRASE: Final = "DPVEIL_PASSPHRASE"  # noqa: S105  the name of a variable
"""The environment variable with the passphrase of a key, where nobody is asked for it."""
KEYFILE: Final = "KEYFILE"

key_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@key_app.callback()
def _root() -> None:
    """Make keys that sign certificates, and show whose they are.

    \b
    Examples:
      dpveil key new releases.key
      dpveil key show releases.key.pub
    """


@key_app.command("new", cls=Command, short_help="Make a key that signs certificates.")
def new_command(
    keyfile: Annotated[Path, typer.Argument(metavar=KEYFILE, help="A file that does not exist yet.")],
    encrypt: Annotated[
        bool,
        typer.Option(
            "--encrypt", help=f"Encrypt it with a passphrase: that in {PASSPHRASE}, or one that you type."
        ),
    ] = False,
    json: AsJson = False,
) -> int:
    """Make a private key for `dpveil obfuscate --sign`, and its public key beside it.

    \b
    Example:
      dpveil key new releases.key

    Keep KEYFILE, which only you may read. Give KEYFILE.pub to those who verify your releases, over a way that
    they trust, and its fingerprint over another. A file that exists is never overwritten.
    """
    from dpveil.release.keys import SigningKey

    passphrase = _ask_passphrase("Passphrase: ") if encrypt else None
    if passphrase == "":
        raise UsageError("the passphrase is empty", hint="choose one, or leave out --encrypt")
    if encrypt and PASSPHRASE not in os.environ and _ask_passphrase("The same again: ") != passphrase:
        raise UsageError("the two passphrases differ", hint="type the same one twice")
    key = SigningKey.generate()
    public = key.write(keyfile, passphrase)
    _tell(key.public, json, {"private": str(keyfile), "public": str(public)})
    return exits.DONE


@key_app.command("show", cls=Command, short_help="Show a key's fingerprint and its public half.")
def show_command(
    keyfile: Annotated[Path, typer.Argument(metavar=KEYFILE, help="A public or a private key.")],
    json: AsJson = False,
) -> int:
    """Show the fingerprint and the public half of a key.

    \b
    Example:
      dpveil key show releases.key.pub

    The fingerprint is what `dpveil verify` calls a signer by.
    """
    from dpveil.release.keys import PublicKey, is_private

    private = is_private(keyfile, argument=KEYFILE)
    public = (
        read_key(keyfile, argument=KEYFILE).public if private else PublicKey.read(keyfile, argument=KEYFILE)
    )
    _tell(public, json, {})
    return exits.DONE


def read_key(path: Path, *, argument: str = "sign") -> SigningKey:
    from dpveil.release.keys import SigningKey, needs_passphrase

    locked = needs_passphrase(path, argument=argument)
    words = _ask_passphrase(f"Passphrase of {path}: ") if locked else None
    return SigningKey.read(path, words, argument=argument)


def keys(sign: Path | None, chain: Path | None, key: Path | None) -> dict[str, Any]:
    """Return `sign` and `mark` of `RunSettings`, by the options --sign, --c2pa and --c2pa-key."""
    signing = None if sign is None else read_key(sign)
    if chain is None and key is None:
        return {"sign": signing, "mark": None}
    if chain is None or key is None:
        here, missing = ("--c2pa", "--c2pa-key") if key is None else ("--c2pa-key", "--c2pa")
        raise UsageError(f"{here} is given without {missing}", hint="give a certificate and its key")
    from dpveil.release.c2pa_manifests import Marker
    from dpveil.release.keys import needs_passphrase

    locked = needs_passphrase(key, argument="c2pa_key")
    words = _ask_passphrase(f"Passphrase of {key}: ") if locked else None
    return {"sign": signing, "mark": Marker.read(chain, key, words)}


def _ask_passphrase(words: str) -> str:
    given = os.environ.get(PASSPHRASE)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise UsageError("the key is encrypted, and nobody can be asked", hint=f"set {PASSPHRASE}")
    return getpass.getpass(say.escape_controls(words))


def _tell(public: PublicKey, json: bool, files: dict[str, Any]) -> None:
    if json:
        say.document({"fingerprint": public.fingerprint, "public_key": public.data.hex(), **files})
        return
    for what, path in files.items():
        say.answer(f"{what:<12} {path}")
    say.answer(f"fingerprint  {public.fingerprint}")
    if not files:
        say.answer(public.pem.decode().rstrip())
