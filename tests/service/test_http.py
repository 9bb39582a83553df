"""HTTP as attackers write it: two lengths, odd chunks, floods, pipelines; no body is taken for a request."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from service_client import SETTINGS, photo

HOST = b"host: localhost\r\n"
NEXT = b"GET /healthz HTTP/1.1\r\n" + HOST
LAST = NEXT + b"connection: close\r\n\r\n"
"""What follows everything that is sent: it is answered where the connection goes on, and ends it."""
GET = NEXT + b"\r\n"


def post(*headers: bytes, version: bytes = b"1.1") -> bytes:
    return (
        b"POST /v1/plan HTTP/" + version + b"\r\n" + HOST + b"".join(h + b"\r\n" for h in headers) + b"\r\n"
    )


def chunked(body: bytes) -> bytes:
    return post(b"content-type: multipart/form-data; boundary=b", b"transfer-encoding: chunked") + body


def get(target: bytes, *headers: bytes, version: bytes = b"1.1", host: bytes = HOST) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"GET " + target + b" HTTP/" + version + b"\r\n" + host + lines + b"\r\n"


def statuses(client: Any, sent: bytes) -> list[int]:
    """Return the statuses of all answers to some bytes and to `LAST`, until the connection ends."""
    got = b""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as line:
        with suppress(ConnectionError):  # it may end while we send; what was answered is there all the same
            line.sendall(sent + LAST)
        with suppress(ConnectionError):
            while part := line.recv(1 << 16):
                got += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d\d\d) ", got)]


LENGTHS = {
    "two that differ": ([b"content-length: 5", b"content-length: 6"], [400]),
    "a list that differs": ([b"content-length: 5, 6"], [400]),
    "with a sign": ([b"content-length: +5"], [400]),
    "below zero": ([b"content-length: -5"], [400]),
    "hexadecimal": ([b"content-length: 0x5"], [400]),
    "of another script": ([b"content-length: \xd9\xa5"], [400]),
    "with a line below": ([b"content-length: 0_5"], [400]),
    "none": ([b"content-length: "], [400]),
    "beyond every number": ([b"content-length: " + b"9" * 5000], [400]),
    "chunked, too": ([b"content-length: 5", b"transfer-encoding: chunked"], [400]),
    "chunked, first": ([b"transfer-encoding: chunked", b"content-length: 5"], [400]),
    "an unknown encoding": ([b"transfer-encoding: xchunked"], [400]),
    "identity": ([b"transfer-encoding: identity"], [400]),
    "two encodings": ([b"transfer-encoding: gzip, chunked"], [400]),
    "chunked twice": ([b"transfer-encoding: chunked", b"transfer-encoding: chunked"], [400]),
    "chunked, then identity": ([b"transfer-encoding: chunked", b"transfer-encoding: identity"], [400]),
    "a space before the colon": ([b"transfer-encoding : chunked"], [400]),
    "a vertical tab": ([b"transfer-encoding: \x0bchunked"], [400]),
    "one": ([b"content-length: 5"], [415, 200]),
    "the same twice": ([b"content-length: 5", b"content-length: 5"], [415, 200]),
    "another name": ([b"transfer_encoding: chunked", b"content-length: 5"], [415, 200]),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(client: Any, name: str) -> None:
    """Five bytes follow, also an end of chunks. Where two readers could differ the connection ends."""
    headers, wanted = LENGTHS[name]
    assert statuses(client, post(*headers) + b"0\r\n\r\n") == wanted


CHUNKS = {
    "a sign": (b"-1\r\n\r\n0\r\n\r\n", [400]),
    "a plus": (b"+5\r\nabcde\r\n0\r\n\r\n", [400]),
    "a prefix": (b"0x5\r\nabcde\r\n0\r\n\r\n", [400]),
    "too many digits": (b"F" * 30 + b"\r\nabc", [400]),
    "no line end after the data": (b"5\r\nabcdeXX0\r\n\r\n", [400]),
    "line feeds alone": (b"5\nabcde\n0\n\n", [400]),
    "a line feed in an extension": (b"5;\nabcde\r\n0\r\n\r\n", [400]),
    "an extension": (b"5;a=b\r\nabcde\r\n0\r\n\r\n", [400, 200]),
    "trailers that contradict": (b"5\r\nabcde\r\n0\r\ncontent-length: 100\r\nhost: evil\r\n\r\n", [400, 200]),
    "a request within": (b"%x\r\n" % len(GET) + GET + b"\r\n0\r\n\r\n", [400, 200]),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks(client: Any, name: str) -> None:
    """Those that are well formed are bodies, which are no form: 400 too, and the connection goes on."""
    body, wanted = CHUNKS[name]
    assert statuses(client, chunked(body)) == wanted


HEADS = {
    "no host": (get(b"/healthz", host=b""), [400]),
    "no host in HTTP/1.0": (get(b"/healthz", host=b"", version=b"1.0"), [421]),
    "two hosts": (get(b"/healthz", b"host: elsewhere"), [400]),
    "HTTP/1.0 ends its connection": (get(b"/healthz", version=b"1.0"), [200]),
    "HTTP/1.0 ends it though it would go on": (
        get(b"/healthz", b"connection: keep-alive", version=b"1.0"),
        [200],
    ),
    "chunks in HTTP/1.0": (post(b"transfer-encoding: chunked", version=b"1.0") + b"0\r\n\r\n", [415]),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [421, 400]),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), [400]),
    "zeros": (bytes(100_000), [400]),
    "no version": (b"GET /healthz\r\n", [400]),
    "another host in the target": (get(b"http://elsewhere/healthz"), [404, 200]),
    "a tunnel": (get(b"localhost:80").replace(b"GET", b"CONNECT"), [404, 200]),
    "a way up": (get(b"/v1/../healthz"), [404, 200]),
    "an escaped way up": (get(b"/v1/%2e%2e/healthz"), [404, 200]),
    "a zero in the path": (get(b"/healthz%00"), [404, 200]),
    "bytes that are no text in the path": (get(b"/%zz%ff"), [400]),
    "raw bytes in the path": (get(b"/h\xe4"), [400]),
    "tabs": (get(b"/healthz").replace(b" ", b"\t"), [400]),
    "a zero in a header": (get(b"/healthz", b"x: a\0b"), [400]),
    "a carriage return in a header": (get(b"/healthz", b"x: a\rb"), [400]),
    "a header that begins with a space": (get(b"/healthz", host=b" x: y\r\n" + HOST), [400]),
    "an unknown method": (get(b"/healthz").replace(b"GET", b"get"), [405, 200]),
    "a long method": (get(b"/healthz").replace(b"GET", b"G" * 5000), [405, 200]),
    "a header of 200 kB": (get(b"/healthz", b"x: " + b"y" * 200_000), [400]),
    "100 000 headers": (get(b"/healthz", *[b"a: b"] * 100_000), [400]),
    "10 000 headers": (get(b"/healthz", *[b"a: b"] * 10_000), [200, 200]),
    "a query of 70 kB": (get(b"/v1/explain?" + b"a" * 70_000), [400]),
    "a query of 500 names": (get(b"/v1/explain?" + b"&".join(b"%x=1" % n for n in range(500))), [422, 200]),
    "a WebSocket": (get(b"/healthz", b"connection: upgrade", b"upgrade: websocket"), [200, 200]),
    "HTTP/2 without TLS": (get(b"/healthz", b"connection: upgrade", b"upgrade: h2c"), [200, 200]),
    "a body of a GET": (get(b"/healthz", b"content-length: %d" % len(GET)) + GET, [200, 200]),
    "a body that is not read": (post(b"content-length: %d" % (len(GET) * 9)) + GET * 9, [415, 200]),
    "a body for another host": (
        post(b"content-length: %d" % len(GET)).replace(b"local", b"g") + GET,
        [421, 200],
    ),
    "a pipeline": (GET * 200, [200] * 201),
    "a pipeline that ends in garbage": (GET * 5 + b"\0\0\r\n\r\n", [200] * 5 + [400]),
}


@pytest.mark.parametrize("name", HEADS)
def test_requests(client: Any, name: str) -> None:
    sent, wanted = HEADS[name]
    assert statuses(client, sent) == wanted


def test_a_client_that_asks_first_sends_its_body_then(client: Any) -> None:
    edge = b"--b\r\ncontent-disposition: form-data; name="
    body = edge + b'"photo"\r\n\r\n' + photo() + b"\r\n" + edge + b'"settings"\r\n\r\n'
    body += json.dumps(SETTINGS).encode() + b"\r\n--b--\r\n"
    head = (b"content-type: multipart/form-data; boundary=b", b"content-length: %d" % len(body))
    assert statuses(client, post(*head, b"expect: 100-continue") + body) == [100, 200, 200]


def test_what_breaks_off_in_chunks_is_no_error_of_the_service(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither before its answer nor after it: the log would fill with failures that are none."""
    head = post(b"transfer-encoding: chunked") + b"5\r\nabcde\r\n"
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as line:
        line.sendall(head)
        assert line.recv(1000).startswith(b"HTTP/1.1 415")
        line.sendall(b"-1\r\n")
        while line.recv(1000):
            pass
    assert statuses(client, chunked(b"5\r\nabcdeXX")) == [400]
    assert client.get("/healthz").status_code == 200
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_slow_loris_keeps_nobody_else_waiting(client: Any) -> None:
    """Connections that say nothing, half a head or half a body, or read nothing: others are served."""
    starts = (b"", b"GET /heal", NEXT, post(b"content-length: 99999") + b"--b\r\n", GET * 50)
    lines = [socket.create_connection(("127.0.0.1", client.base_url.port)) for _ in range(100)]
    try:
        for number, line in enumerate(lines):
            line.sendall(starts[number % len(starts)])
        assert client.get("/healthz").status_code == 200
        for line in lines:
            line.sendall(b"x")
        time.sleep(0.01)
        assert client.get("/v1/methods").status_code == 200
    finally:
        for line in lines:
            line.close()
