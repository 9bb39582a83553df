"""Words of record: what people read on screen, of calls that work and of mistakes.

`python tests/contract/record_words.py` writes words.txt anew: read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Final

from contract.recording import RUNS, runs

FILE: Final = Path(__file__).with_name("words.txt")
CHANGING: Final = re.compile(
    r"[\w/+=-]{40,}|\b[0-9a-f]{8,}\b|\b[\d.]+ (seconds|s)\b|\d{4}-\d\d-\d\d[T ][\d:.+]+"
)
"""What differs from run to run: keys, hashes, times and dates."""
FACES: Final = "--seed 4 --gallery heads --outside none"
WORDS: Final = (
    *("", "--version", "--help", "obfuscate --help", "obfuscate --method dp-pix --help", "explain --help"),
    *(
        "demo --help",
        "serve --help",
        "train --help",
        "install --help",
        "nothing",
        "obfuscat small.png",
        "methods -v",
    ),
    f"obfuscate pair.jpg --out two.jpg {FACES}",
    f"obfuscate pair.jpg --out one.jpg --except 2 {FACES} --review look.html -v",
    f"obfuscate pair.jpg --out both.jpg --except 1,2 {FACES}",
    f"obfuscate pair.jpg --out like.jpg --keep-like people/group.png {FACES}",
    f"obfuscate pair.jpg --out seen.jpg --replace-like people/group.png {FACES}",
    f"obfuscate pair.jpg --out head.jpg --protect head --attributes tone=dark {FACES}",
    "obfuscate pair.jpg --out kept.jpg --attributes gender=2,age=1 --seed 4 -v",
    f"obfuscate pair.jpg --out number9.jpg --except 9 {FACES}",
    f"obfuscate pair.jpg --out street.jpg --preset street {FACES}",
    f"obfuscate pair.jpg --out strict.jpg --preset strict {FACES}",
    f"obfuscate pair.jpg page.png small.png --out several {FACES} --if-none copy --dry-run",
    f"obfuscate pair.jpg page.png small.png --out several {FACES} --if-none copy --manifest rows.csv",
    "obfuscate page.png --out words.png --regions text --method fill",
    "obfuscate page.png --out name.png --regions text --text-like numbers --method fill -v",
    "obfuscate page.png --out scan.png --preset scan",
    "obfuscate small.png --out mask.png --method mosaic --block 4 --regions 4,4,9,9",
    "obfuscate small.png --out irises.png --method fill --regions irises",
    "obfuscate small.png --out snow.png --method snow --delta 0.5 --regions whole -v",
    "obfuscate small.png --out wide.png --method dp-pix --rho 40 --regions whole --post-processing median:3",
    "obfuscate small.png --out late.png --method dp-pix --epsilon 1 --block 4000 --regions whole",
    *("obfuscate scan.pdf --out pages.jpg --regions whole --method fill", "obfuscate album --out small.png"),
    "obfuscate small.png --out beyond.png --method fill --regions 30,30,20,20",
    f"obfuscate walk.mp4 --out walk.private.mp4 {FACES} -v",
    "video analyze walk.mp4 --out walk.json --sheet walk.png --gallery heads --outside none",
    *(
        f"obfuscate trio.png --out trio.private.png --protect head {FACES}",
        "obfuscate walk.mp4 --out noise.mp4 --method dp-pix --epsilon 1 --block 8 --regions 0,0,64,64 --seed 1",
        "obfuscate walk.mp4 --out few.mp4 --method dp-pix --epsilon 1 --neighbourhood 4 --regions whole --seed 1",
        "obfuscate scan.pdf --out copies.pdf --if-none copy",
        "obfuscate scan.pdf --out mixed.pdf --method dp-pix --epsilon 1 --block 8 --regions text --if-none copy",
        "verify copies.pdf noise.mp4 few.mp4",
        "obfuscate album --out budget --method dp-pix --epsilon 2 --delta 1e-6 --block 4 --regions 0,0,6,6"
        " --regions 8,7,8,9 -v --ledger sqlite:///budget.db --subject album --jobs 1",
        "explain small.png --method dp-pix --rho 1 --block 4 --neighbourhood 9 --regions 0,0,9,9 --regions 20,10,20,20",
        "synthesize mixed --out flat --epsilon 900 --delta 1e-6 --crop middle --pictures 4 --seed 2",
        *(
            "ledger show absent --ledger sqlite:///budget.db",
            "ledger show album/more --ledger sqlite:///budget.db",
        ),
        "obfuscate small.png --out other.png --method fill --regions whole --other-regions",
        "verify two.jpg one.jpg several walk.private.mp4 words.png",
        "verify two.jpg -v",
        "verify pair.jpg absent.jpg",
    ),
    *("faces pair.jpg", "faces walk.mp4", "faces absent.jpg"),
    *(
        "explain pair.jpg",
        "explain pair.jpg --except 1",
        "explain --method fill --size 8x8",
        "explain --method gallery --epsilon 3",
    ),
    *(
        "explain --method blur --sigma 3 --size 9x9",
        "explain --method latent --epsilon 40",
        "explain --method latent --rho 3",
    ),
    "explain --method mosaic --block 8 --size 48x40",
    "explain --method dp-pix --epsilon 0.1 --block 8 --size 48x40",
    "explain --method dp-pix --epsilon 90 --block 2 --neighbourhood 4 --size 48x40",
    "explain --method dp-pix --rho 0.1 --block 8 --size 48x40 --channels 1",
    "explain --method dct-gaussian --rho 9 --size 48x40",
    "explain --method snow --delta 0.3 --size 48x40",
    "explain --method dp-svd --epsilon 3 --rank 2 --size 48x40",
    "explain small.png --method dp-samp --epsilon 3 --clusters 4 --regions whole",
    *("compare pair.jpg --out faces.sheet.png", "ledger history absent --ledger sqlite:///budget.db"),
    *("ledger limit album --epsilon -3 --ledger sqlite:///budget.db", "ledger limit a --ledger nothing://a"),
    *("key show absent.pub", "card album --out card.json", "train pca absent --out a", "audit absent"),
    *(
        "mechanism matrix --mechanism laplace --range 0: --sensitivity 1 --epsilon 1",
        "mechanism query ages.csv",
    ),
    "mechanism matrix --mechanism geometric --range 0:3 --sensitivity 1 --epsilon 1",
    "mechanism query ages.csv --column absent --query mean --range 0:9 --epsilon 1",
    "mechanism query ages.csv --column age --query count --above 30 --epsilon 1 --seed 1",
    "mechanism query ages.csv --column age --query histogram --bins 3 --range 0:90 --epsilon 1 --seed 1",
    *(
        "synthesize album --out more --epsilon 1 --pictures 4",
        "evaluate absent --out results2",
        "evaluate --check made",
    ),
)
"""Calls besides those of the contract."""


def words() -> dict[str, str]:
    """Return what every call prints, and its exit code in brackets, by its command line."""
    calls = dict(RUNS) | {call: call for call in WORDS}
    return {
        calls[name]: CHANGING.sub("*", f"{printed}{errors}[{code}]\n")
        for name, code, printed, errors in runs(calls)
    }


def text(found: dict[str, str]) -> str:
    return "".join(f"$ dpveil {call}\n{printed}\n" for call, printed in found.items())


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ["COLUMNS"] = "100"
    FILE.write_text(text(words()))


if __name__ == "__main__":
    main()
