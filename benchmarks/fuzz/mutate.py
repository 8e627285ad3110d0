"""Damage bytes in ways that parsers trip over."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

LONGEST = 1 << 16

WORDS: tuple[bytes, ...] = (
    *(b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x1f\x8b\x08"),
    *(b"[" * 200, b"{", b"}", b'"', b"\\", b'\\ud800', b"NaN", b"-Infinity", b"1e400", b"9" * 5000, b"-0", b"null"),
    *(b"true", b"[]", b"{}", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xf0\x9f\x92\xa9", b"\xed\xa0\x80", b"\xe2\x80\xae"),
    *(b"\x1b[2J", b"../../", b"/etc/passwd", b"%s%n", b"__reduce__", b"!!python/object", b"cos\nsystem\n"),
    *("\u0300".encode() * 40, b"0" * 40, b"1.7976931348623157e308", b"2147483648", b"18446744073709551616"),
)  # fmt: skip

Damage = Callable[[random.Random, bytearray], None]


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of ``seeds`` with one to eight places damaged, at most ``LONGEST`` bytes long."""
    content = bytearray(rng.choice(seeds))
    if rng.random() < 0.1:
        _splice(rng, content, rng.choice(seeds))
    for _ in range(1 << rng.randrange(4)):
        rng.choice(_DAMAGES)(rng, content)
    return bytes(content[:LONGEST])


def _splice(rng: random.Random, content: bytearray, other: bytes) -> None:
    """The head of one and the tail of another."""
    content[rng.randint(0, len(content)) :] = other[rng.randint(0, len(other)) :]


def _flip(rng: random.Random, content: bytearray) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, content: bytearray) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _insert(rng: random.Random, content: bytearray) -> None:
    at = rng.randint(0, len(content))
    content[at:at] = rng.choice(WORDS) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 16))


def _overwrite(rng: random.Random, content: bytearray) -> None:
    word = rng.choice(WORDS)
    at = rng.randint(0, len(content))
    content[at : at + len(word)] = word


def _drop(rng: random.Random, content: bytearray) -> None:
    at = rng.randint(0, len(content))
    del content[at : at + rng.choice((1, 2, 4, 16, 256))]


def _cut(rng: random.Random, content: bytearray) -> None:
    del content[rng.randint(0, len(content)) :]


def _repeat(rng: random.Random, content: bytearray) -> None:
    at = rng.randint(0, len(content))
    piece = content[at : at + rng.randint(1, 64)]
    content[at:at] = piece * rng.randint(1, 20)


def _change_number(rng: random.Random, content: bytearray) -> None:
    """Digits are where sizes, shapes and scores stand in text formats."""
    places = [at for at, byte in enumerate(content[:4096]) if 0x30 <= byte <= 0x39]
    if places:
        at = rng.choice(places)
        content[at : at + 1] = rng.choice(
            (b"0", b"9", b"-1", b"1e9", b"99999999999", b"0.5", b"null", b'"1"')
        )


_DAMAGES: tuple[Damage, ...] = (
    *(_flip, _flip, _set, _set, _insert, _insert, _overwrite, _drop, _cut, _repeat, _change_number, _change_number),
)  # fmt: skip
