"""Released Matroska and WebM files have each part once, in its place, and no number that is free."""

import zlib

import pytest
from test_video_layout import SECRET, judged, releases


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return releases(tmp_path_factory.mktemp("released"))


def element(name, body, wide=None):
    """Return an element whose size has as few bytes as it may, or `wide`."""
    wide = wide or next(n for n in range(1, 9) if len(body) < (1 << 7 * n) - 1)
    head = name.to_bytes((name.bit_length() + 7) // 8, "big")
    return head + (len(body) | 1 << 7 * wide).to_bytes(wide, "big") + body


def elements_in(data):
    at = 0
    while at < len(data):
        width = 9 - data[at].bit_length()
        wide = 9 - data[at + width].bit_length()
        size = int.from_bytes(data[at + width : at + width + wide], "big") & (1 << 7 * wide) - 1
        start = at + width + wide
        yield int.from_bytes(data[at : at + width], "big"), wide, data[start : start + size]
        at = start + size


def within(path, change):
    """Return what changes the first element with this path in a Matroska file; checksums are made anew."""

    def made(data):
        parts, done = [], False
        for name, wide, body in elements_in(data):
            if name == path[0] and not done:
                body, done = (within(path[1:], change)(body) if path[1:] else summed(change(body))), True
                wide = max(wide, len(element(name, body)) - len(element(name, b"")) - len(body) + 1)
            parts.append((name, wide, body))
        return summed(b"".join(element(name, body, wide) for name, wide, body in parts))

    return made


def summed(body):
    """Return the body of an element with the checksum that it should have, if it has one."""
    if body[:2] != b"\xbf\x84":
        return body
    return body[:2] + zlib.crc32(body[6:]).to_bytes(4, "little") + body[6:]


SEGMENT, CLUSTER, CUES, TRACKS = (0x18538067,), (0x18538067, 0x1F43B675), (0x18538067, 0x1C53BB6B), 0x1654AE6B
TAG = element(0x7373, element(0x63C0, b"") + element(0x67C8, element(0x45A3, b"DURATION")))
TIMED = (*CLUSTER, 0xE7)
KIND, BLOCK = "a part of another kind", "a block of another kind"
CHANGED = {
    "checksums": (KIND, SEGMENT, lambda body: body + element(0xBF, b"ORIG")),
    "a setup elsewhere": (KIND, SEGMENT, lambda body: body + element(0x63A2, SECRET[:200])),
    "a setup in the index": (KIND, CUES, lambda body: body + element(0x63A2, SECRET[:200])),
    "tags again": (KIND, SEGMENT, lambda body: body + element(0x1254C367, TAG)),
    "a tag of no track": (KIND, (*SEGMENT, 0x1254C367), lambda body: body + 2 * TAG),
    "a third track": (KIND, (*SEGMENT, TRACKS), lambda body: body + 2 * element(0xAE, b"")),
    "an index of no frame": (
        "its index",
        CUES,
        lambda body: body + element(0xBB, element(0xB3, b"\1") + element(0xB7, element(0xF1, b"\1"))),
    ),
    "a cluster without frames": (
        "a cluster without frames",
        SEGMENT,
        lambda body: body + element(0x1F43B675, element(0xE7, b"\7")),
    ),
    "a block without bytes": (BLOCK, CLUSTER, lambda body: body + element(0xA3, b"\x82\0\0\x80")),
    "a block of another track": (BLOCK, CLUSTER, lambda body: body + element(0xA3, b"\x83\0\0\x80a")),
    "flags of a block": (BLOCK, CLUSTER, lambda body: body + element(0xA3, b"\x82\0\0\x81a")),
    "a frame at the same time": (
        "frames that are not shown",
        CLUSTER,
        lambda body: body + element(0xA3, b"\x81\0\0\0a"),
    ),
    "additions to a block": (
        KIND,
        CLUSTER,
        lambda body: body + element(0xA0, element(0xA1, b"\x82\0\0\0a") + element(0x75A1, SECRET)),
    ),
    "a longer size": (
        "a size that is longer than it has to be",
        SEGMENT,
        lambda body: body + element(0xA3, b"", 4),
    ),
    "a longer number": ("a number that is longer than it has to be", TIMED, lambda body: b"\0" + body),
}


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("container", ["o.mkv", "o.webm"])
def test_each_element_is_once_in_its_place(tmp_path, released, name, container):
    why, path, change = CHANGED[name]
    data = within(path, change)(released[container])
    assert data != released[container]
    (tmp_path / container).write_bytes(data)
    assert judged(tmp_path / container) == why


@pytest.mark.parametrize("container", ["o.mkv", "o.webm"])
def test_files_that_are_put_together_again_are_the_same(released, container):
    assert within(CLUSTER, bytes)(released[container]) == released[container]


def test_checksums_are_those_of_the_bytes(tmp_path, released):
    for at in (2, -1):  # the checksum itself, and where the part ends
        data = within(CUES, lambda body: body[2:6] and body)(released["o.mkv"])
        begun = data.index(b"\x1c\x53\xbb\x6b") + 5
        found = bytearray(data)
        found[begun + at if at > 0 else at] ^= 1
        (tmp_path / "o.mkv").write_bytes(found)
        assert judged(tmp_path / "o.mkv") == "a checksum of other bytes"


def grouped(number, flags=b"\0", time=None, length=None, reference=None):
    """Return a block of pictures in a group, of the frame `number` of a clip of 40 ms a frame."""
    time = 40 * number if time is None else time
    parts = element(0xA1, b"\x81" + time.to_bytes(2, "big") + flags + b"a")
    parts += b"" if length is None else element(0x9B, length)
    return element(0xA0, parts + (b"" if reference is None else element(0xFB, reference)))


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        ([grouped(0), grouped(1, reference=b"\xd8")], 2),
        ([grouped(0, length=b"\x28"), grouped(1, reference=b"\xd8", length=b"\x77")], 2),
        (
            [grouped(0, length=b"\x29"), grouped(1, reference=b"\xd8")],
            "frames that are shown for another time",
        ),
        ([grouped(0), grouped(1, reference=b"\xd9")], "frames that depend on others"),
        ([grouped(0), grouped(1)], "its index"),
        ([grouped(0), grouped(1, b"\x80", reference=b"\xd8")], BLOCK),
        ([grouped(0), grouped(0, reference=b"\0")], "frames that are not shown"),
        ([grouped(1, time=40)], "a cluster that begins at another time"),
        ([element(0xA0, element(0x9B, b"\1"))], KIND),
    ],
)
def test_numbers_beside_blocks_follow_from_their_times(tmp_path, blocks, why):
    cue = element(0xB7, element(0xF7, b"\1") + element(0xF1, b"\0") + element(0xF0, b"\3"))
    body = element(0x1F43B675, element(0xE7, b"\0") + b"".join(blocks))
    body += element(0x1C53BB6B, element(0xBB, element(0xB3, b"\0") + cue))
    (tmp_path / "a.mkv").write_bytes(element(0x1A45DFA3, b"") + element(0x18538067, body))
    assert judged(tmp_path / "a.mkv") == why
