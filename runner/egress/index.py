"""The package index and the certificates of this machine, as pip would find them here."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from runner.egress.rules import ALIAS, Endpoint
from runner.errors import UsageProblem

VARIABLE = "AUTOMEDBENCH_PACKAGE_INDEX"
"""The operator's word: address of the index and, after spaces, of further hosts that it serves files from."""

CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
MOST_CERTIFICATE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class PackageIndex:
    """What a sandbox needs to know to install packages. ``url`` None: pip's own default."""

    url: str | None = None
    endpoints: tuple[Endpoint, ...] = ()
    certificates: bytes | None = None

    def environment(self, certificates: str) -> dict[str, str]:
        """Variables for pip and its like; ``certificates`` is where the bundle lies inside."""
        variables = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        if self.url is not None:
            parts = urlsplit(self.url)
            variables["PIP_INDEX_URL"] = self.url
            if parts.scheme == "http" and parts.hostname:
                variables["PIP_TRUSTED_HOST"] = parts.hostname
        if self.certificates is not None:
            names = (*CERTIFICATES, "CURL_CA_BUNDLE")
            variables |= dict.fromkeys(names, certificates)
        return variables


def package_index(environ: Mapping[str, str] = os.environ) -> PackageIndex:
    """The index that runs on this machine use.

    ``AUTOMEDBENCH_PACKAGE_INDEX`` counts before all else, and its hosts may lie on private addresses: whoever sets it
    says that agents may reach them. An index out of pip's settings is reachable only on a public address. One that
    holds a password is left out, for an agent would read it.

    Raises
    ------
    UsageProblem
        The variable holds something that is no address.
    """
    words = environ.get(VARIABLE, "").split()
    private = bool(words)
    if not words:
        configured = environ.get("PIP_INDEX_URL") or _setting("index-url", environ)
        words = configured.split()[:1] if configured else []
    endpoints = [endpoint for word in words if (endpoint := _endpoint(word, private)) is not None]
    url = _seen_inside(words[0]) if endpoints else None
    return PackageIndex(url, tuple(endpoints), _certificates(environ))


def _endpoint(address: str, private: bool) -> Endpoint | None:
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        parts, port = urlsplit(""), 0
    if not parts.hostname:
        if private:
            raise UsageProblem(f"{VARIABLE}: expected http:// or https:// addresses, found {address!r}")
        return None
    if parts.username or parts.password:
        if private:
            raise UsageProblem(
                f"{VARIABLE} holds a password, which every agent could read; name an index without"
            )
        return None
    return Endpoint(parts.hostname, port, private)


def _seen_inside(address: str) -> str:
    """A plain-http index gets a name of ours: one on this machine's loopback would be the sandbox's own inside."""
    parts = urlsplit(address)
    return parts._replace(netloc=ALIAS).geturl() if parts.scheme == "http" else address


def _certificates(environ: Mapping[str, str]) -> bytes | None:
    """The bundle that this machine trusts, where one is configured at all."""
    named = next((environ[name] for name in CERTIFICATES if environ.get(name)), None)
    path = Path(named or _setting("cert", environ) or "")
    try:
        if not path.is_file() or path.stat().st_size > MOST_CERTIFICATE_BYTES:
            return None
        bundle = path.read_bytes()
    except OSError:
        return None
    return None if b"PRIVATE KEY" in bundle else bundle


def _setting(name: str, environ: Mapping[str, str]) -> str | None:
    """A global setting of pip's configuration files; the last file that has it counts."""
    parser = configparser.RawConfigParser(strict=False)
    for path in _pip_files(environ):
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
    return parser.get("global", name, fallback=None)


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME", "/nonexistent"))
    for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip" / "pip.conf"
    yield Path(environ.get("XDG_CONFIG_HOME", home / ".config"), "pip", "pip.conf")
    yield Path(sys.prefix, "pip.conf")
    if own := environ.get("PIP_CONFIG_FILE"):
        yield Path(own)
