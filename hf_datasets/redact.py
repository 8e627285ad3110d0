"""Take secrets out of what is published: keys, tokens, home folders, the names of user and host.

A secret is known by its value (the keys of all configured providers) or by its shape. What was recognised by its shape
once is known by its value from then on, so that a token is found again where it is escaped, encoded or cut to pieces.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_datasets.chunks import line_blocks
from hf_datasets.disguises import decoded_runs, encoded, plain, shared_runs
from hf_datasets.secret_shapes import NAMES_OF_NOBODY, Span, home_folders_in, tokens_in

LEAST_SECRET = 8
"""A value of fewer characters is no key: local servers take 'EMPTY' or 'none'."""
LEAST_PIECE = 10
"""So many characters of a key in a row are taken out wherever they stand."""
LEAST_EDGE = 6
"""Of a key that is cut by the border between two outputs, a piece this long is taken out too."""
_ENCODED_PIECE = 14
_LONGEST = 512
"""No key is longer; a block of a private key is found by its beginning."""
_LONGEST_BLOCK = 4096
"""No block of a private key is longer; of one without an end, the beginning is known from then on."""
MOST_LEARNT = 100
"""Each value that is known costs a search of the whole trace; more of them are no accident."""
_BASE64_TEXT = re.compile(r"[A-Za-z0-9+/_=-]*")

_FIXED = frozenset((
    "type", "kind", "change", "limit", "language", "prev", "finish", "name", "call", "id", "stage", "judge", "metric",
    "run_id", "case_id", "tier", "release", "task", "track", "agent", "network", "sandbox", "format",
))  # fmt: skip
"""Fields with values from a closed set: a host that happens to be called 'files' changes none of them."""


_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)", re.IGNORECASE)


def environment_secrets(names: Iterable[str] = ()) -> list[str]:
    """What this process's environment holds that must never leave: keys of providers, and the Hub's own token.

    That is every variable that is named like a secret or looks like one, and those in ``names``.
    """
    wanted = set(names)
    found = [
        value
        for name, value in os.environ.items()
        if name in wanted or _SECRET_NAME.search(name) or any(True for _ in tokens_in(value))
    ]
    with contextlib.suppress(ImportError):
        from huggingface_hub import get_token

        found += filter(None, [get_token()])
    return found


class Unredactable(Exception):
    """A line that is not JSON, or more keys than can be searched for: nothing can be said about what is in there."""


@dataclass(frozen=True)
class Machine:
    """Names that tell whose machine this is."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def here(cls) -> Machine:
        host = socket.gethostname()
        users: tuple[str, ...] = ()
        with contextlib.suppress(KeyError, OSError):  # a uid without a name
            users = (getpass.getuser(),)
        homes = tuple(home for home in {str(Path.home()), str(Path.home().resolve())} if home.count("/") > 1)
        return cls(homes, users, tuple(dict.fromkeys((socket.getfqdn(), host, host.split(".")[0]))))

    def words(self) -> re.Pattern[str] | None:
        """What to look for as whole words, longest first."""
        names = {name for name in (*self.users, *self.hosts) if len(name) > 2} - NAMES_OF_NOBODY
        names = {name for name in names if not name.startswith("localhost")}
        kinds = [
            (self.homes, "home"),
            (tuple(names & {*self.users}), "user"),
            (tuple(names - {*self.users}), "host"),
        ]
        parts = [
            f"(?P<{kind}>{'|'.join(map(re.escape, sorted(found, key=len, reverse=True)))})"
            for found_, kind in kinds
            if (found := [name for name in found_ if name])
        ]
        return re.compile(rf"(?<![\w-])(?:{'|'.join(parts)})(?![\w-])") if parts else None


class Redactor:
    """Replaces secrets by ``[redacted:KIND]`` and counts them in ``found``.

    Parameters
    ----------
    secrets
        Values that must never leave, such as the keys of all configured providers. Those of fewer than
        `LEAST_SECRET` characters are left out.
    machine
        Whose names are taken out too; those of this machine by default.
    """

    def __init__(self, secrets: Iterable[str] = (), machine: Machine | None = None) -> None:
        self.machine = Machine.here() if machine is None else machine
        self.secrets = frozenset(secret.strip() for secret in secrets if len(secret.strip()) >= LEAST_SECRET)
        self.pieces: frozenset[str] = frozenset()
        self.found: Counter[str] = Counter()
        self._words = self.machine.words()
        self._encoded = {form for secret in self.secrets for form in encoded(secret)}

    # --- learning ---

    def having_seen(self, chunks: Iterable[bytes]) -> Redactor:
        """A redactor that also knows what a file of JSON lines holds in the shape of a token.

        A token may be encoded there, or cut by the border between two outputs.

        Raises
        ------
        Unredactable
            It holds more of them than can be searched for.
        """
        seen: set[str] = set()
        pieces: set[str] = set()
        ends: dict[str, str] = {}
        for block in line_blocks(chunks):
            seen |= {_known_by(one) for one in self._shaped(block.decode("utf-8", "replace"))}
            if len(seen) > MOST_LEARNT:
                raise Unredactable(f"it holds more than {MOST_LEARNT} different texts in the shape of a key")
            for key, value in _outputs(block):
                pieces |= self._cut_at(ends.get(key, ""), value, seen)
                ends[key] = value[-_LONGEST:]
        if seen <= self.secrets and not pieces:
            return self
        wiser = Redactor(self.secrets | seen, self.machine)
        wiser.pieces = self.pieces | pieces
        return wiser

    def _shaped(self, text: str) -> set[str]:
        seen = {text[start:end] for start, end, _ in tokens_in(text)}
        bare = plain(text)
        if bare is not None:
            seen |= {bare.text[start:end] for start, end, _ in tokens_in(bare.text)}
        for content in decoded_runs(text):
            seen |= {content[start:end] for start, end, _ in tokens_in(content)}
        return seen

    def _cut_at(self, before: str, after: str, seen: set[str]) -> set[str]:
        """Both pieces of every secret that begins at the end of ``before`` and ends in ``after``."""
        cut = len(before)
        both = before + after[:_LONGEST]
        hits = [(start, end) for start, end, _ in tokens_in(both)] if before else []
        hits += [
            span
            for secret in self.secrets | seen
            if before
            for span in shared_runs(both, secret, len(secret))
        ]
        pieces = {
            piece for start, end in hits if start < cut < end for piece in (both[start:cut], both[cut:end])
        }
        return {piece for piece in pieces if len(piece) >= LEAST_EDGE}

    # --- looking ---

    def holds_secret(self, text: str) -> bool:
        """Whether there is something secret in ``text``; the names of user and host do not count."""
        return any(True for _ in self._secret_spans(text))

    def screen(self, chunks: Iterable[bytes]) -> bool:
        """Whether a file that is published as it is holds a secret, wherever the chunks were cut."""
        tail = b""
        for chunk in chunks:
            block = tail + chunk
            if self.holds_secret(block.decode("latin-1")):
                return True
            tail = block[-4 * _LONGEST :]
        return False

    # --- taking out ---

    def text(self, text: str) -> str:
        """``text`` without secrets and without names of user, host and home folders."""
        return self._replaced(text, names=True)

    def json(self, value: Any, key: str = "") -> Any:
        """A JSON value with every string in it redacted, keys of objects included."""
        if isinstance(value, str):
            return self._nested(value, names=key not in _FIXED)
        if isinstance(value, Mapping):
            return {self._replaced(name, names=False): self.json(one, name) for name, one in value.items()}
        if isinstance(value, Sequence):
            return [self.json(one, key) for one in value]
        return value

    def jsonl(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Redact JSON lines that arrive in chunks of any size; a line without secrets keeps its bytes.

        A last line without a newline, which a killed writer left, is dropped.

        Raises
        ------
        Unredactable
            A line is not JSON; says which.
        """
        before = 0
        for block in line_blocks(chunks):
            lines = block.splitlines(keepends=True) if self.taints(block) else []
            yield b"".join(self._line(line, number) for number, line in enumerate(lines, before + 1)) or block
            before += block.count(b"\n")

    def _line(self, line: bytes, number: int) -> bytes:
        if not self.taints(line):
            return line
        try:
            redacted = self.json(json.loads(line))
        except (ValueError, RecursionError):
            raise Unredactable(f"line {number} is not JSON") from None
        return json.dumps(redacted, separators=(",", ":")).encode() + b"\n"

    def taints(self, raw: bytes) -> bool:
        """Whether JSON text holds anything that would be taken out of one of its strings."""
        return any(True for _ in self._spans(raw.decode("utf-8", "replace"), names=True))

    def _nested(self, text: str, names: bool) -> str:
        """A string that is JSON itself, such as a call's arguments, is redacted inside and stays JSON."""
        if text[:1] in ("{", "[") and any(True for _ in self._spans(text, names)):
            with contextlib.suppress(ValueError, RecursionError):
                text = json.dumps(self.json(json.loads(text)), ensure_ascii=False)
        return self._replaced(text, names)

    def _replaced(self, text: str, names: bool) -> str:
        parts: list[str] = []
        done = 0
        for start, end, kind in _merged(self._spans(text, names)):
            parts += [text[done:start], f"[redacted:{kind.replace(' ', '-')}]"]
            done = end
            self.found[kind] += 1
        return "".join((*parts, text[done:])) if parts else text

    # --- finding ---

    def _spans(self, text: str, names: bool) -> Iterator[Span]:
        yield from self._secret_spans(text)
        if names:
            yield from home_folders_in(text)
            if self._words is not None:
                for match in self._words.finditer(text):
                    yield match.start(), match.end(), match.lastgroup or "name"

    def _secret_spans(self, text: str) -> Iterator[Span]:
        yield from self._literal_spans(text)
        bare = plain(text)
        if bare is not None:
            for start, end, kind in self._literal_spans(bare.text):
                yield (*bare.original(start, end), kind)
        for form in self._encoded:
            for start, end in shared_runs(text, form, min(len(form), _ENCODED_PIECE)):
                yield (*_whole_run(text, start, end), "encoded key")

    def _literal_spans(self, text: str) -> Iterator[Span]:
        yield from tokens_in(text)
        for secret in self.secrets:
            for start, end in shared_runs(text, secret, min(len(secret), LEAST_PIECE)):
                yield start, end, "key"
        for piece in self.pieces:
            for start, end in shared_runs(text, piece, len(piece)):
                yield start, end, "key"


def _known_by(secret: str) -> str:
    """What of something that was recognised by its shape is looked for elsewhere."""
    return secret if len(secret) <= _LONGEST_BLOCK else secret[:_LONGEST]


def _whole_run(text: str, start: int, end: int) -> tuple[int, int]:
    """The run of base64 characters around a span: its neighbours hold bits of the secret too."""
    while start > 0 and _BASE64_TEXT.fullmatch(text[start - 1]):
        start -= 1
    match = _BASE64_TEXT.match(text, end)
    return start, match.end() if match else end


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans in order, overlapping ones as one."""
    current: Span | None = None
    for span in sorted(spans):
        if current is None:
            current = span
        elif span[0] <= current[1]:
            current = (current[0], max(current[1], span[1]), current[2])
        else:
            yield current
            current = span
    if current is not None:
        yield current


def _outputs(block: bytes) -> Iterator[tuple[str, str]]:
    """The free texts that object lines hold directly, by key: what one output ends with, the next may go on with."""
    for line in block.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield from (
                (key, value) for key, value in found.items() if isinstance(value, str) and key not in _FIXED
            )
