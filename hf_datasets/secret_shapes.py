"""What secrets look like when nobody named them: tokens by their prefix, keys in blocks, home folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int, str]
"""Start, end and kind of something that must not be published."""

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
"""A token begins a word, or follows an escaped control character of a text that was never parsed."""

_NOBODY = "agent|root|user|ubuntu|debian|runner|nobody|jovyan|docker|vagrant|ec2-user"


@dataclass(frozen=True)
class Shape:
    """A kind of secret. Text without ``hint`` is not searched; a group ``secret`` narrows what is taken out."""

    kind: str
    hint: str
    pattern: re.Pattern[str]

    def spans(self, text: str) -> Iterator[Span]:
        if self.hint in text:
            group = "secret" if "secret" in self.pattern.groupindex else 0
            for match in self.pattern.finditer(text):
                yield match.start(group), match.end(group), self.kind


def _token(hint: str, rest: str) -> Shape:
    return Shape("token", hint, re.compile(f"{_START}{re.escape(hint)}{rest}"))


_KEY_BLOCK = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
_WEB_TOKEN = rf"{_START}eyJ[A-Za-z0-9_-]{{8,}}\.eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]*"
_VARIABLE = (
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)"
    r"(?:=|['\"\\]*: ?)['\"\\]*(?P<secret>[^\s'\"\\$,;{}()\[\]<>]{8,})"
)

TOKENS: tuple[Shape, ...] = (
    _token("hf_", r"[A-Za-z0-9]{20,}"),
    _token("api_org_", r"[A-Za-z0-9]{20,}"),
    _token("sk-", r"[A-Za-z0-9_-]{20,}"),
    _token("sk_", r"(?:live|test)_[A-Za-z0-9]{16,}"),
    *(_token(hint, r"[A-Za-z0-9]{30,}") for hint in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_")),
    _token("github_pat_", r"[A-Za-z0-9_]{22,}"),
    _token("glpat-", r"[A-Za-z0-9_-]{20,}"),
    _token("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _token("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _token("AIza", r"[A-Za-z0-9_-]{35}"),
    _token("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _token("gsk_", r"[A-Za-z0-9]{20,}"),
    _token("xai-", r"[A-Za-z0-9]{20,}"),
    _token("r8_", r"[A-Za-z0-9]{30,}"),
    _token("pypi-", r"[A-Za-z0-9_-]{50,}"),
    _token("dop_v1_", r"[a-f0-9]{40,}"),
    _token("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    *(_token(f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeprs"),
    Shape("private key", "PRIVATE KEY", re.compile(_KEY_BLOCK, re.DOTALL)),
    Shape("web token", "eyJ", re.compile(_WEB_TOKEN)),
    Shape("bearer", "earer", re.compile(r"[Bb]earer[ :]+(?P<secret>[A-Za-z0-9._~+/=-]{16,})")),
    Shape("basic login", "asic ", re.compile(r"[Bb]asic (?P<secret>[A-Za-z0-9+/]{12,}={0,2})(?![A-Za-z])")),
    Shape("login in an address", "@", re.compile(r"://[^\s/@:\"'\\]*:(?P<secret>[^\s/@\"'\\]{4,})@")),
    Shape("variable", "KEY", re.compile(r"(?<=[A-Z0-9_])" + _VARIABLE)),
    Shape("variable", "TOKEN", re.compile(r"(?<=[A-Z0-9_])" + _VARIABLE)),
    Shape("variable", "SECRET", re.compile(r"(?<=[A-Z0-9_])" + _VARIABLE)),
    Shape("variable", "PASSW", re.compile(r"(?<=[A-Z0-9_])" + _VARIABLE)),
)
"""Secrets by themselves. One that was seen once is known from then on, in every disguise."""

FOLDERS: tuple[Shape, ...] = (
    Shape("user", "/home/", re.compile(rf"(?<![\w.])/home/(?!(?:{_NOBODY})\b)(?P<secret>\w[\w.-]*)")),
    Shape("user", "/Users/", re.compile(r"(?<![\w.])/Users/(?!Shared\b)(?P<secret>\w[\w.-]*)")),
    Shape("user", "Users\\", re.compile(r"[A-Za-z]:\\+Users\\+(?P<secret>[\w][\w.-]*)")),
)
"""Home folders of whoever it is: the name goes, the path stays readable."""

NAMES_OF_NOBODY = frozenset(_NOBODY.split("|")) | {"localhost", "admin", "home", "test"}
"""User and host names that say nothing about anybody."""


def tokens_in(text: str) -> Iterator[Span]:
    """Spans of everything in ``text`` that has the shape of a secret."""
    for shape in TOKENS:
        yield from shape.spans(text)


def home_folders_in(text: str) -> Iterator[Span]:
    """Spans of the names in paths of home folders."""
    for shape in FOLDERS:
        yield from shape.spans(text)
