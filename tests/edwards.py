"""Ed25519 once more, straight from RFC 8032 §5.1 and slow: what the tests of signatures compare with."""

from __future__ import annotations

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int]
NEUTRAL: Point = (0, 1)


def added(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    both = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + both, -1, P) % P
    return x, (y1 * y2 + x1 * x2) * pow(1 - both, -1, P) % P


def times(number: int, point: Point) -> Point:
    total = NEUTRAL
    while number:
        if number & 1:
            total = added(total, point)
        point, number = added(point, point), number >> 1
    return total


def x_of(y: int, sign: int) -> int | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def decoded(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    y, sign = number & (2**255 - 1), number >> 255
    x = None if y >= P else x_of(y, sign)
    return None if x is None else (x, y)


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


B_Y = 4 * pow(5, -1, P) % P
BASE: Point = (x_of(B_Y, 0) or 0, B_Y)


def fits(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is one of the message, by the equation without cofactor."""
    key, point, s = decoded(public), decoded(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or point is None or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    return times(s, BASE) == added(point, times(int.from_bytes(digest, "little") % L, key))
