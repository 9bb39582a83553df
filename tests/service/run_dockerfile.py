"""Do what the Dockerfile says where no Docker is at hand: build it, run it read-only and not as root, ask it.

    python tests/service/run_dockerfile.py        # as root, on Linux

Each stage is a copy-on-write view of this machine's own files, which plays the part of the image that it
begins with; everything happens in namespaces of its own, and is gone at the end. The service runs as the user
of the Dockerfile, without capabilities, without a network, and can write to /data and /tmp alone, as in the
command of docs/service.md. Its health check must fail before it starts, and succeed then; a photo is released
with a key, and verified. Packages come from the index.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
INSIDE = ("unshare", "--mount", "--pid", "--fork", "--propagation", "private")
CLIENT = """
import io, json, sys, urllib.request as r
from PIL import Image
key, name = sys.argv[1:]
file = io.BytesIO()
Image.effect_noise((64, 64), 90).convert("RGB").save(file, "PNG")
settings = {"method": "dp-pix", "epsilon": 1, "block": 8, "neighbourhood": 16, "regions": "whole"}
settings["subject"] = "album"
part = "--b\\r\\ncontent-disposition: form-data; name=%s\\r\\n\\r\\n"
body = (part % "photo; filename=a.png").encode() + file.getvalue() + b"\\r\\n" + (part % "settings").encode()
body += json.dumps(settings).encode() + b"\\r\\n--b--\\r\\n"
headers = {"Authorization": "Bearer " + key, "Content-Type": "multipart/form-data; boundary=b", "Host": name}
def fetch(path, body=None):
    return r.urlopen(r.Request("http://127.0.0.1:8000" + path, body, headers)).read()
made = json.loads(fetch("/v1/releases", body))
for name, path in (("release.png", "image_url"), ("release.png.certificate.json", "certificate_url")):
    open("/tmp/" + name, "wb").write(fetch(made[path]))
"""
"""What a client does, within the container's network."""
RELEASE = "/tmp/release.png"  # noqa: S108  in a container of its own


def steps(text: str) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage, in order."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    stages: list[list[tuple[str, str]]] = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.partition(" ")
        stages += [[]] if word == "FROM" else []
        stages[-1].append((word, rest.strip()))
    return stages


def run(*words: str, **more: object) -> None:
    subprocess.run(words, check=True, **more)  # type: ignore[call-overload]


class Stage:
    """One stage: its file system, environment and user."""

    def __init__(self, place: Path, number: int) -> None:
        self.root, parts = place / f"{number}", place / f"{number}-parts"
        for name in ("upper", "work"):
            (parts / name).mkdir(parents=True)
        self.root.mkdir()
        given = f"lowerdir=/,upperdir={parts}/upper,workdir={parts}/work"
        run("mount", "-t", "overlay", "overlay", "-o", given, str(self.root))
        for name in ("proc", "dev", "sys"):
            run("mount", "--rbind", f"/{name}", str(self.root / name))
        home = Path(sys.base_prefix).resolve()
        for folder in [*home.parents][:-1]:  # this machine's Python may be in somebody's home
            (self.root / folder.relative_to("/")).chmod(0o755)
        self.environment = {
            "PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": "/root",
        }
        own = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "PIP_DEFAULT_TIMEOUT")
        self.environment |= {name: os.environ[name] for name in own if name in os.environ}
        self.user: list[str] = []
        (self.root / "tmp").mkdir(exist_ok=True)

    def command(self, *words: str) -> list[str]:
        """Return the words with which a command runs in this stage as its user."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["chroot", str(self.root), *self.user, "env", "-i", *variables, *words]

    def do(self, word: str, rest: str, stages: dict[str, Stage]) -> None:
        """Follow one instruction; those about running are for later."""
        if word == "ENV":
            pairs = (pair.partition("=")[::2] for pair in shlex.split(rest))
            self.environment |= {n: v.replace("$PATH", self.environment["PATH"]) for n, v in pairs}
        elif word == "COPY":
            self.copy(rest.split(), stages)
        elif word == "RUN":
            run(*self.command("sh", "-euc", rest))
        elif word == "USER":
            group = subprocess.check_output(["chroot", str(self.root), "id", "-g", rest], text=True).strip()
            self.user = ["setpriv", "--reuid", rest, "--regid", group, "--clear-groups", "--no-new-privs"]
            self.user += ["--bounding-set=-all", "--inh-caps=-all"]
        elif word not in ("FROM", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"):
            raise ValueError(f"{word} is not known here")

    def copy(self, words: list[str], stages: dict[str, Stage]) -> None:
        """Copy as COPY does, of our files only what .dockerignore lets through."""
        base = stages[words.pop(0).removeprefix("--from=")].root if words[0].startswith("--from=") else None
        *sources, target = words
        there = self.root / target.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if target.endswith("/"):
            there.mkdir(exist_ok=True)
        let = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
        for source in sources:
            if base is None and f"!{source}" not in let:
                raise ValueError(f"{source} does not reach Docker")
            run("cp", "-a", str((base or ROOT) / source.lstrip("/")), str(there))


def build(place: Path) -> tuple[Stage, dict[str, str]]:
    """Return the last stage, built, and what it says about running, by instruction."""
    stages: dict[str, Stage] = {}
    last: list[tuple[str, str]] = []
    for number, last in enumerate(steps((ROOT / "Dockerfile").read_text(encoding="utf-8"))):
        stage = Stage(place, number)
        stages[last[0][1].partition(" AS ")[2] or str(number)] = stage
        for word, rest in last:
            print(f"{word} {rest[:100]}", flush=True)
            stage.do(word, rest, stages)
    return stage, dict(last)


def sealed(stage: Stage, volumes: Iterable[str]) -> None:
    """Make a stage read-only but for /tmp and its volumes, which are its user's; take the network away."""
    user = stage.user[stage.user.index("--reuid") + 1]
    run("mount", "-t", "tmpfs", "tmpfs", str(stage.root / "tmp"))
    for volume in volumes:
        run("mount", "-t", "tmpfs", "-o", f"mode=700,uid={user}", "tmpfs", f"{stage.root}{volume}")
    run("mount", "-o", "remount,ro", str(stage.root))
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "there is no network of its own")
    with socket.socket() as line:  # the loopback of the new network is switched on
        fcntl.ioctl(line, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))


def ask(stage: Stage, told: dict[str, str]) -> None:
    """Run the service as the documentation says, check its health, release a photo, and stop it."""
    check = json.loads(told["HEALTHCHECK"].partition("CMD ")[2])
    shown = (
        (ROOT / "docs" / "service.md")
        .read_text(encoding="utf-8")
        .partition("docker run ")[2]
        .partition("```")[0]
    )
    words = shlex.split(shown.replace("\\\n", " ").partition(" dpveil serve ")[2])
    name = words[words.index("--hostname") + 1]
    for path in ("/x", "/opt/dpveil/x", "/home/x"):
        if not subprocess.run(
            stage.command("sh", "-c", f": > {path}"), capture_output=True, check=False
        ).returncode:
            raise ValueError(f"{path} was written")
    run(
        *stage.command(
            "dpveil", "ledger", "limit", "album", "--epsilon", "9", "--ledger", "sqlite:////data/budget.db"
        )
    )
    made = stage.command(
        "dpveil", "api-key", "new", "shop", "--keys", "/data/keys.json", "--subject", "album"
    )
    key = subprocess.check_output(made, text=True).strip()
    if not subprocess.run(stage.command(*check), capture_output=True, check=False).returncode:
        raise ValueError("the health check succeeds without a service")
    with subprocess.Popen(stage.command(*json.loads(told["ENTRYPOINT"]), "serve", *words)) as process:
        try:
            until = time.monotonic() + 300
            while subprocess.run(stage.command(*check), capture_output=True, check=False).returncode:
                if process.poll() is not None or time.monotonic() > until:
                    raise ValueError("the health check does not succeed")
                time.sleep(1)
            run(*stage.command("python", "-c", CLIENT, key, name))
        finally:  # whatever failed, it ends, or nobody would hear of it
            process.send_signal(signal.SIGTERM)
        if process.wait(60):
            raise ValueError(f"the service ended with {process.returncode}")
    run(*stage.command("dpveil", "verify", RELEASE))
    run(*stage.command("dpveil", "ledger", "check", "--ledger", "sqlite:////data/budget.db"))


def main() -> int:
    if os.geteuid():
        print("this mounts file systems: run it as root", file=sys.stderr)
        return 1
    if "--inside" not in sys.argv:
        return subprocess.run([*INSIDE, sys.executable, __file__, "--inside"], check=False).returncode
    with tempfile.TemporaryDirectory() as place:
        run("mount", "-t", "tmpfs", "tmpfs", place)
        stage, told = build(Path(place))
        sealed(stage, told["VOLUME"].split())
        ask(stage, told)
        run("umount", "--recursive", "--lazy", place)
    print("built, run and asked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
