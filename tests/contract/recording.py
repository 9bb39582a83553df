"""Records what people rely on, as data: names, options, exit codes and the shapes of answers, no sentence.

`python tests/contract/recording.py` writes contract.json anew, and the transcripts and pictures beside it:
read and look at the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

FILE = Path(__file__).with_name("contract.json")
WHOLE = ("--method", "dp-pix", "--epsilon", "2", "--block", "8", "--neighbourhood", "4", "--regions", "whole")
LEDGER = ("--ledger", "sqlite:///budget.db")

RUNS: Mapping[str, str] = {
    "photo": f"obfuscate small.png --out a.png {' '.join(WHOLE)}",
    "photo, signed, paid, reviewed": f"obfuscate small.png --out signed.png {' '.join(WHOLE)} --sign my.key"
    f" {' '.join(LEDGER)} --subject album",
    "photo, box": "obfuscate small.png --out box.png --method snow --delta 0.01 --regions 8,8,16,16",
    "photo, faces": "obfuscate people/group.png --out faces.png",
    "photo, no face": "obfuscate small.png --out none.png --quiet",
    "photo, weak": f"obfuscate small.png --out weak.png {' '.join(WHOLE)} --at-least strong",
    "photo, exists": f"obfuscate small.png --out a.png {' '.join(WHOLE)}",
    "photo, exists, other settings": "obfuscate small.png --out a.png --method fill --regions whole",
    "folder": f"obfuscate mixed --out private {' '.join(WHOLE)} --jobs 1 --manifest rows.csv",
    "folder, again": f"obfuscate mixed --out private {' '.join(WHOLE)} --jobs 1",
    "folder, two jobs": f"obfuscate mixed --out private2 {' '.join(WHOLE)} --jobs 2",
    "folder into an archive": f"obfuscate mixed --out private.zip {' '.join(WHOLE)} --jobs 1",
    "shard": f"obfuscate shard.tar --out shards {' '.join(WHOLE)} --jobs 1",
    "multi-page": f"obfuscate pages.tif --out pages.private.pdf {' '.join(WHOLE)}",
    "document": f"obfuscate scan.pdf --out scan.private.pdf --dpi 50 {' '.join(WHOLE)}",
    "clip": "obfuscate clip.mp4 --out clip.private.mp4 --method fill --regions 0,8,16,16",
    "no budget left": f"obfuscate small.png --out p.png {' '.join(WHOLE)} {' '.join(LEDGER)} --subject poor",
    "nothing readable": f"obfuscate damaged.png --out d.png {' '.join(WHOLE)}",
    "nothing there": f"obfuscate absent.png --out d.png {' '.join(WHOLE)}",
    "wrong usage": "obfuscate small.png --out d.png --method dp-pix --epsilon -1",
    "no such method": "obfuscate small.png --out d.png --method absent",
    "verify": "verify a.png signed.png scan.private.pdf clip.private.mp4 pages.private.pdf",
    "verify, trusted": "verify signed.png --trust my.key.pub",
    "verify, not trusted": "verify a.png --trust my.key.pub",
    "verify, too weak": "verify a.png --at-least strong",
    "verify, damaged": "verify touched.png",
    "verify, folder": "verify private",
    "verify, archive": "verify private.zip",
    "verify, no certificate": "verify small.png",
    "explain": "explain --method dp-pix --epsilon 1 --block 16 --neighbourhood 256 --size 128x128",
    "explain, attributes": "explain --method attributes --attributes gender=4",
    "methods": "methods",
    "faces": "faces people/group.png --preview numbered.png",
    "faces, none": "faces small.png",
    "compare": "compare small.png --out sheet.png --method dp-pix --epsilon 1 --regions whole",
    "ledger limit": f"ledger limit album --epsilon 9 {' '.join(LEDGER)}",
    "ledger limit, poor": f"ledger limit poor --epsilon 1 {' '.join(LEDGER)}",
    "ledger show": f"ledger show album {' '.join(LEDGER)}",
    "ledger subjects": f"ledger show {' '.join(LEDGER)}",
    "ledger history": f"ledger history album {' '.join(LEDGER)}",
    "ledger check": f"ledger check {' '.join(LEDGER)}",
    "ledger absent": "ledger show album --ledger sqlite:///absent.db",
    "key": "key new my.key",
    "key show": "key show my.key.pub",
    "api key": "api-key new shop --keys keys.json --subject studio/shop",
    "api keys": "api-key list --keys keys.json",
    "mechanisms": "mechanism list",
    "mechanism": "mechanism release --mechanism truncated-laplace --range 0: --sensitivity 1"
    " --epsilon 1 --seed 1 3",
    "query": "mechanism query ages.csv --column age --query mean --range 0:120 --epsilon 1 --seed 1",
    "matrix": "mechanism matrix --mechanism linear-program-1 --range 0:5 --sensitivity 1 --epsilon 0.5",
    "card": "card private --out private/croissant.json",
    "synthesize": "synthesize album --out made --epsilon 900 --delta 1e-6 --crop middle --pictures 4",
    "verify, data set": "verify made",
    "train": "train pca album --out eigenfaces.safetensors --length 4 --side 16 --grey",
    "audit": "audit fill --seed 1",
    "evaluate": "evaluate drawn --out results --method dp-pix --epsilon 5 --attack pixels"
    " --people 3 --photos 2 --jobs 1",
    "evaluate, checked": "evaluate --check results",
    "plan of a clip": "video analyze clip.mp4 --out plan.json --regions 0,8,16,16 --method fill",
    "clip by its plan": "video render plan.json --out rendered.mp4",
}
"""Calls in one folder, each run with --json after those that it needs."""

FIRST = ("key", "ledger limit", "ledger limit, poor")


def inputs() -> None:
    """Make all that the calls read, in the current folder: pictures, a clip, a document and tables."""
    import tarfile

    import av
    from skimage import data

    small = np.random.default_rng(0).integers(0, 256, (32, 40, 3), dtype=np.uint8)
    Image.fromarray(small).save("small.png")
    Path("people").mkdir()
    person = data.astronaut()[:300, 80:380]
    Image.fromarray(person).save("people/group.png")
    Image.fromarray(np.hstack([person, person[:, ::-1]])).save("pair.jpg", quality=90)
    Image.fromarray(np.hstack([person, person[:, ::-1], person])[::3, ::3]).save("trio.png")
    page = Image.new("RGB", (420, 160), "white")
    ImageDraw.Draw(page).text((20, 50), "Anna Berg 4711", "black", font_size=40)
    page.save("page.png")
    Path("damaged.png").write_bytes(Path("small.png").read_bytes()[:60])
    Path("mixed").mkdir()
    for name in ("a.png", "b.jpg", "c.webp"):
        Image.fromarray(small).save(Path("mixed", name))
    Path("mixed/d.png").write_bytes(b"no picture")
    with tarfile.open("shard.tar", "w") as shard:
        shard.add("small.png", "000.png")
    pages = [Image.fromarray(small), Image.fromarray(255 - small)]
    pages[0].save("pages.tif", save_all=True, append_images=pages[1:])
    pages[0].save("scan.pdf", save_all=True, append_images=pages[1:], resolution=50)
    with av.open("clip.mp4", "w") as clip:
        stream = clip.add_stream("libx264", rate=5, width=64, height=48, pix_fmt="yuv420p")
        for index in range(5):
            frame = np.full((48, 64, 3), 40 * index, np.uint8)
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        clip.mux(stream.encode())
    with av.open("walk.mp4", "w") as clip:
        stream = clip.add_stream("libx264", rate=5, width=300, height=240, pix_fmt="yuv420p")
        for index in range(8):
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(np.roll(person[:240], 8 * index, axis=1))))
        clip.mux(stream.encode())
    for person in range(3):
        Path("album", str(person)).mkdir(parents=True)
        for photo in range(4):
            picture = np.random.default_rng([person, photo]).integers(0, 256, (16, 16), dtype=np.uint8)
            Image.fromarray(picture).save(Path("album", str(person), f"{photo}.png"))
    Path("ages.csv").write_text("age\n" + "\n".join(str(20 + age) for age in range(30)))


def shape(value: Any) -> Any:
    """Return `value` with types in place of values; a list becomes what its elements are taken together."""
    if isinstance(value, Mapping):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [_union([shape(item) for item in value])] if value else []
    if isinstance(value, bool) or value is None:
        return str(value).lower() if value is None else "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _union(shapes: list[Any]) -> Any:
    if all(isinstance(one, dict) for one in shapes):
        keys = sorted({key for one in shapes for key in one})
        return {key: _union([one[key] for one in shapes if key in one]) for key in keys}
    if all(isinstance(one, list) for one in shapes):
        merged = [item for one in shapes for item in one]
        return [_union(merged)] if merged else []
    kinds: list[Any] = []
    for one in shapes:
        if one not in kinds:
            kinds.append(one)
    return kinds[0] if len(kinds) == 1 else sorted(kinds, key=json.dumps)


def runs(calls: Mapping[str, str]) -> Iterator[tuple[str, int, str, str]]:
    """Yield the name of every call, its exit code, and what it prints, in one folder with all inputs."""
    from dpveil import cli

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        inputs()
        for name in sorted(calls, key=lambda name: name not in FIRST):
            if name == "verify, damaged":
                _touch("a.png", "touched.png")
            printed, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
                code = cli.run(calls[name].split())
            yield name, code, printed.getvalue(), errors.getvalue()


def answers() -> dict[str, Any]:
    """Return the exit code and the shape of the answer of every call, and the shapes of what was written."""
    options, calls, files = commands(), {}, {}
    shapes: dict[str, Any] = {}
    for name, call in RUNS.items():
        first, second = call.split()[:2] if " " in call else (call, "")
        known = options.get(f"dpveil {first} {second}", options.get(f"dpveil {first}", []))
        calls[name] = f"{call} --json" if "--json" in known else call
    for name, code, printed, _ in runs(calls):
        document = json.loads(printed) if calls[name].endswith(" --json") else None
        shapes[name] = {"exit code": code, "answer": shape(document)}
        written = (path for path in Path().rglob("*.json") if _recorded(path))
        files = {str(path): shape(json.loads(path.read_text())) for path in sorted(written)}
    return {"calls": shapes, "files": files}


def _recorded(path: Path) -> bool:
    return path.parent == Path() or path.is_relative_to("private") or path.parent.name in ("results", "made")


def _touch(source: str, target: str) -> None:
    image = np.asarray(Image.open(source)).copy()
    image[0, 0] ^= 1
    Image.fromarray(image).save(target)
    suffix = ".certificate.json"
    Path(target + suffix).write_bytes(Path(source + suffix).read_bytes())


def commands() -> dict[str, list[str]]:
    """Return the options and arguments of every command."""
    import typer

    from dpveil.cli import app

    def walk(path: str, command: Any) -> Iterator[tuple[str, list[str]]]:
        command = getattr(command, "target_command", command)
        below = getattr(command, "commands", {})
        for name in sorted(below):
            yield from walk(f"{path} {name}", below[name])
        names = (opt for item in command.params for opt in (*item.opts, *item.secondary_opts))
        yield path, sorted(name for name in names)

    return dict(walk("dpveil", typer.main.get_command(app)))


def public_names() -> dict[str, Any]:
    """Return the names of the package, and every method with its class and parameters."""
    import dpveil
    from dpveil.mechanisms import pixel

    classes = {name: getattr(pixel, name) for name in sorted(pixel.__all__)}
    return {
        "dpveil": sorted(dpveil.__all__),
        "signatures": {
            name: list(inspect.signature(getattr(dpveil, name)).parameters)
            for name in ("read", "plan", "obfuscate", "verify")
        },
        "pixel": {
            name: list(inspect.signature(item).parameters) if inspect.isclass(item) else ""
            for name, item in classes.items()
        },
        "methods": {row["name"]: row for row in dpveil.methods()},
    }


def service() -> dict[str, Any]:
    """Return every path and method of the service with its codes, and the shapes of answers."""
    from service_client import service as running

    from dpveil.service.limits import Limits

    picture, settings = io.BytesIO(), {"method": "dp-pix", "epsilon": 2, "regions": "whole"}
    Image.fromarray(np.zeros((32, 40, 3), np.uint8)).save(picture, "PNG")
    files = {"photo": ("a.png", picture.getvalue(), "image/png")}
    form = {"settings": json.dumps(settings)}
    with running(Limits()) as (_, client):
        document = client.get("/openapi.json").json()
        release = client.post("/v1/releases", files=files, data=form, headers={"Idempotency-Key": "a"})
        asked = {
            "plan": client.post("/v1/plan", files=files, data=form),
            "release": release,
            "release again": client.get(f"/v1/releases/{release.json().get('id')}"),
            "methods": client.get("/v1/methods"),
            "no photo": client.post("/v1/releases", data=form),
            "no method": client.post("/v1/releases", files=files, data={"settings": '{"method": "absent"}'}),
            "absent": client.get("/v1/releases/absent"),
            "healthy": client.get("/healthz"),
            "ready": client.get("/readyz"),
        }
    paths = {
        f"{method.upper()} {path}": sorted(item["responses"])
        for path, items in sorted(document["paths"].items())
        for method, item in sorted(items.items())
    }
    return {"paths": paths} | {
        name: {"status": answer.status_code, "answer": shape(answer.json())} for name, answer in asked.items()
    }


PARTS: Mapping[str, Callable[[], Any]] = {
    "commands": commands,
    "public names": public_names,
    "service": service,
    "runs": answers,
}


def main() -> None:
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "service")]
    warnings.simplefilter("ignore")
    os.environ.setdefault("COLUMNS", "100")
    from contract import pictures, transcript

    contract = {name: part() for name, part in PARTS.items()}
    FILE.write_text(_lines(contract) + "\n")
    transcript.record()
    pictures.record()


def _lines(value: Any, levels: int = 3) -> str:
    """Return JSON with one line for each name of the third level, so that differences can be read."""
    if not levels or not isinstance(value, Mapping) or not value:
        return json.dumps(value, sort_keys=True)
    items = (f"{json.dumps(key)}: {_lines(item, levels - 1)}" for key, item in sorted(value.items()))
    return "{\n" + ",\n".join(items) + "\n}"


if __name__ == "__main__":
    main()
