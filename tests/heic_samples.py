"""HEIC files made in code: H.265 pictures of raw blocks (I_PCM), which need no encoder, in own containers.

The syntax is that of ITU-T H.265 §7.3 with coding tree units of 16 × 16, all of them lossless, and no filter.
"""

import struct
from collections.abc import Sequence

import numpy as np
from PIL import Image

UNIT = 16
SPLIT = 139
"""Initial value of the only context, that of split_cu_flag (H.265 table 9-7)."""
NCLX = b"nclx" + struct.pack(">HHHB", 1, 13, 6, 0x80)
NO_SPLIT_LPS = ((128, 176, 208, 240), (128, 167, 197, 227), (128, 158, 187, 216), (123, 150, 178, 205),
                (116, 142, 169, 195), (111, 135, 160, 185), (105, 128, 152, 175), (100, 122, 144, 166),
                (95, 116, 137, 158), (90, 110, 130, 150), (85, 104, 123, 142), (81, 99, 117, 135),
                (77, 94, 111, 128), (73, 89, 105, 122), (69, 85, 100, 116), (66, 80, 95, 110),
                (62, 76, 90, 104), (59, 72, 86, 99), (56, 69, 81, 94), (53, 65, 77, 89),
                (51, 62, 73, 85), (48, 59, 69, 80), (46, 56, 66, 76), (43, 53, 63, 72),
                (41, 50, 59, 69), (39, 48, 56, 65), (37, 45, 54, 62), (35, 43, 51, 59),
                (33, 41, 48, 56), (32, 39, 46, 53), (30, 37, 43, 50), (29, 35, 41, 48),
                (27, 33, 39, 45), (26, 31, 37, 43), (24, 30, 35, 41), (23, 28, 33, 39),
                (22, 27, 32, 37), (21, 26, 30, 35), (20, 24, 29, 33), (19, 23, 27, 31),
                (18, 22, 26, 30), (17, 21, 25, 28), (16, 20, 23, 27), (15, 19, 22, 25),
                (14, 18, 21, 24), (14, 17, 20, 23), (13, 16, 19, 22), (12, 15, 18, 21),
                (12, 14, 17, 20), (11, 14, 16, 19), (11, 13, 15, 18), (10, 12, 15, 17),
                (10, 12, 14, 16), (9, 11, 13, 15), (9, 11, 12, 14), (8, 10, 12, 14),
                (8, 9, 11, 13), (7, 9, 11, 12), (7, 9, 10, 12), (7, 8, 10, 11),
                (6, 8, 9, 11), (6, 7, 9, 10), (6, 7, 8, 9), (2, 2, 2, 2))  # fmt: skip
"""Ranges of the less probable symbol (H.265 table 9-46)."""


class Bits:
    """Bits on their way into bytes, the highest first, with the arithmetic coder for what needs it."""

    def __init__(self) -> None:
        self.bits: list[int] = []
        state = min(max(1, ((SPLIT >> 4) * 5 - 45) * 26 // 16 + ((SPLIT & 15) << 3) - 16), 126)
        self.likely = int(state > 63)
        self.state = state - 64 if self.likely else 63 - state
        self.start()

    def put(self, value: int, count: int) -> "Bits":
        self.bits += [value >> shift & 1 for shift in range(count - 1, -1, -1)]
        return self

    def golomb(self, *values: int) -> "Bits":
        for value in values:
            length = (value + 1).bit_length()
            self.put(value + 1, 2 * length - 1)
        return self

    def align(self, stop: int) -> "Bits":
        self.put(1, stop)
        return self.put(0, -len(self.bits) % 8)

    def bytes(self) -> bytes:
        return np.packbits(self.bits).tobytes()

    def start(self) -> None:
        self.low, self.range, self.first, self.waiting = 0, 510, True, 0

    def _carry(self, bit: int) -> None:
        if not self.first:
            self.bits.append(bit)
        self.first = False
        self.bits += [1 - bit] * self.waiting
        self.waiting = 0

    def _renormalise(self) -> None:
        while self.range < 256:
            if self.low < 256:
                self._carry(0)
            elif self.low >= 512:
                self.low -= 512
                self._carry(1)
            else:
                self.low -= 256
                self.waiting += 1
            self.range <<= 1
            self.low <<= 1

    def whole(self) -> None:
        """A coding unit that is not split."""
        less = NO_SPLIT_LPS[self.state][self.range >> 6 & 3]
        self.range -= less
        if self.likely == 0:
            self.state = min(self.state + 1, 62)
        else:
            self.low, self.range = self.low + self.range, less
            raise AssertionError("the context starts with 0 as the likelier symbol")
        self._renormalise()

    def end(self, value: int) -> None:
        """A symbol that ends the arithmetic code if it is 1; then come a one and zeros up to a byte."""
        self.range -= 2
        if value:
            self.low, self.range = self.low + self.range, 2
            self._renormalise()
            self._carry(self.low >> 9 & 1)
            self.put(self.low >> 7 & 3 | 1, 2).align(0)
            self.start()
        else:
            self._renormalise()


def unit(kind: int, rbsp: bytes) -> bytes:
    """A NAL unit: its header, and its bytes such that no start code is among them."""
    out, zeros = bytearray((kind << 1, 1)), 0
    for byte in rbsp:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out)


def _profile(bits: Bits, chroma: int) -> Bits:
    kind = 3 if chroma == 1 else 4
    bits.put(kind, 8).put(sum(1 << 31 - each for each in ({1, 2, 3} if kind == 3 else {4})), 32)
    return bits.put(0b1001, 4).put(0, 44).put(93, 8)


def parameters(
    width: int, height: int, crop: tuple[int, int] = (0, 0), chroma: int = 1, left: int = 0
) -> list[bytes]:
    """Video, sequence and picture parameter sets; `crop` is what is cut off at the right and the bottom."""
    video = _profile(Bits().put(0, 4).put(3, 2).put(0, 6).put(0, 3).put(1, 1).put(0xFFFF, 16), chroma)
    video.put(1, 1).golomb(0, 0, 0).put(0, 6).golomb(0).put(0, 2).align(1)
    sequence = _profile(Bits().put(0, 7).put(1, 1), chroma).golomb(0, chroma)
    sequence.put(0, int(chroma == 3)).golomb(width, height).put(int(any(crop) or left > 0), 1)
    step = 2 if chroma == 1 else 1
    if any(crop) or left:
        sequence.golomb(left // step, crop[0] // step, 0, crop[1] // step)
    sequence.golomb(0, 0, 0).put(1, 1).golomb(0, 0, 0)
    sequence.golomb(0, 1, 0, 2, 0, 0).put(0, 3).put(1, 1).put(7, 4).put(7, 4).golomb(0, 1).put(1, 1)
    sequence.golomb(0).put(0, 5).align(1)
    pictures = Bits().golomb(0, 0).put(0, 7).golomb(0, 0, 0).put(0, 3).golomb(0, 0).put(0, 7)
    pictures.put(1, 1).put(0, 1).put(1, 1).put(0, 2).golomb(0).put(0, 2).align(1)
    return [unit(32, video.bytes()), unit(33, sequence.bytes()), unit(34, pictures.bytes())]


def coded(levels: np.ndarray, chroma: int = 1) -> tuple[list[bytes], bytes]:
    """Parameter sets and the slice of a picture h × w × 3, by `chroma` 0 grey, 1 at 4:2:0, 3 at 4:4:4."""
    height, width = levels.shape[:2]
    down, right = -height % UNIT, -width % UNIT
    wide = np.pad(levels, ((0, down), (0, right), (0, 0)), mode="edge")
    planes = list(np.moveaxis(np.asarray(Image.fromarray(wide).convert("YCbCr")), 2, 0))[: 3 if chroma else 1]
    sides = [UNIT, *([UNIT // 2 if chroma == 1 else UNIT] * (len(planes) - 1))]
    if chroma == 1:
        planes[1:] = [plane[::2, ::2] for plane in planes[1:]]
    out = Bits().put(0b10, 2).golomb(0, 2, 0).align(1)
    rows, columns = wide.shape[0] // UNIT, wide.shape[1] // UNIT
    for row, column in np.ndindex(rows, columns):
        out.whole()
        out.end(1)
        for plane, side in zip(planes, sides, strict=True):
            block = plane[row * side : (row + 1) * side, column * side : (column + 1) * side]
            out.bits += np.unpackbits(np.ascontiguousarray(block)).tolist()
        out.end(int((row, column) == (rows - 1, columns - 1)))
    data = unit(19, out.bytes())
    return parameters(wide.shape[1], wide.shape[0], (right, down), chroma), data


def box(kind: bytes, *bodies: bytes) -> bytes:
    body = b"".join(bodies)
    return struct.pack(">I", 8 + len(body)) + kind + body


def config(sets: Sequence[bytes], chroma: int = 1) -> bytes:
    """The body of hvcC."""
    head = b"\1\3" + b"\x70" + bytes(9) + b"\x5d\xf0\0\xfc" + bytes((0xFC | chroma, 0xF8, 0xF8, 0, 0, 3))
    arrays = b"".join(struct.pack(">BHH", 0x80 | 32 + i, 1, len(each)) + each for i, each in enumerate(sets))
    return head + b"\x03" + arrays


Stored = tuple[bytes, bytes, list[tuple[bytes, bytes]], list[tuple[bytes, list[int]]]]
"""An item: type, contents, properties (type and body), and references."""


def size(width: int, height: int) -> tuple[bytes, bytes]:
    return b"ispe", struct.pack(">4xII", width, height)


def pictured(levels: np.ndarray, *more: tuple[bytes, bytes], chroma: int = 1) -> Stored:
    """An item that holds a picture, with more properties; 4:2:0 needs even sizes."""
    sets, data = coded(levels, chroma)
    told = [size(levels.shape[1], levels.shape[0]), (b"hvcC", config(sets, chroma)), (b"colr", NCLX)]
    return b"hvc1", struct.pack(">I", len(data)) + data, [*told, *more], []


def container(items: Sequence[Stored], *, brand: bytes = b"heic", more: bytes = b"") -> bytes:
    """A file with these items; the first is the picture. `more` are boxes at its end."""
    stored = [each for item in items for each in item[2]]
    stored = list(dict.fromkeys(stored))

    def meta(start: int) -> bytes:
        places = infos = links = references = b""
        for number, (kind, contents, properties, to) in enumerate(items, 1):
            infos += box(b"infe", struct.pack(">IHH", 2 << 24 | (number > 1), number, 0), kind, b"\0")
            places += struct.pack(">HHHII", number, 0, 1, start, len(contents))
            start += len(contents)
            links += struct.pack(">HB", number, len(properties))
            links += bytes(stored.index(each) + 1 for each in properties)
            for name, others in to:
                references += box(name, struct.pack(f">HH{len(others)}H", number, len(others), *others))
        count = struct.pack(">H", len(items))
        return box(
            b"meta", bytes(4), box(b"hdlr", bytes(8), b"pict", bytes(13)), box(b"pitm", bytes(4), b"\0\1"),
            box(b"iloc", bytes(4), b"\x44\0", count, places), box(b"iinf", bytes(4), count, infos),
            box(b"iprp", box(b"ipco", *(box(*each) for each in stored)),
                box(b"ipma", bytes(4), struct.pack(">I", len(items)), links)),
            box(b"iref", bytes(4), references) if references else b"",
        )  # fmt: skip

    head = box(b"ftyp", brand, bytes(4), b"mif1", brand)
    return head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", *(item[1] for item in items)) + more


def heic(levels: np.ndarray, *more: tuple[bytes, bytes], chroma: int = 1) -> bytes:
    """A HEIC with one picture, and nothing else."""
    return container([pictured(levels, *more, chroma=chroma)])


def tiled(levels: np.ndarray, side: int, *more: tuple[bytes, bytes]) -> bytes:
    """A HEIC of square tiles, as phones write them; the last ones reach beyond the edges."""
    height, width = levels.shape[:2]
    rows, columns = -(-height // side), -(-width // side)
    wide = np.pad(levels, ((0, rows * side - height), (0, columns * side - width), (0, 0)), mode="edge")
    tiles = [
        pictured(wide[row * side : (row + 1) * side, column * side : (column + 1) * side])
        for row, column in np.ndindex(rows, columns)
    ]
    grid = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    of = [(b"dimg", list(range(2, 2 + len(tiles))))]
    return container([(b"grid", grid, [size(width, height), (b"colr", NCLX), *more], of), *tiles])
