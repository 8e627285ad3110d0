"""Sign records with an SSH key and check the signatures: OpenSSH's own format, made and read by ``ssh-keygen``.

A signature says who vouches for a record's bytes. Without one a record proves only that its parts fit together.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.files import write_atomic

NAMESPACE = "automedbench"
"""A signature that was made for another purpose does not count here."""

SUFFIX = ".sig"
MAX_SIGNATURE = 64 * 1024
_PATIENCE = 60
_ARMOURED = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END SSH SIGNATURE-----\n"
)
_SIGNER = re.compile(r'^Good "automedbench" signature for (\S+) with ', re.MULTILINE)


class SigningError(Exception):
    """A record could not be signed, or its signature does not hold; one line that says why."""


def sign_record(record: Path, key: Path) -> Path:
    """Sign a record's bytes; the signature's file is ``<record>.sig``.

    Parameters
    ----------
    record : Path
        ``record.json``.
    key : Path
        An SSH private key, or a public one whose other half an agent holds. It is read by ``ssh-keygen`` alone, which
        asks on the terminal where it has a passphrase.

    Raises
    ------
    SigningError
        There is no record or no such key, or ``ssh-keygen`` is missing or refused.
    """
    try:
        content = record.read_bytes()
    except OSError as error:
        raise SigningError(f"{record}: {error.strerror}") from None
    if not key.is_file():
        raise SigningError(f"{key}: expected an SSH key; make one with 'ssh-keygen -t ed25519'")
    signature = _run(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)], content)
    path = record.with_name(record.name + SUFFIX)
    write_atomic(path, signature)
    return path


def verify(record_bytes: bytes, signature: bytes, allowed_signers: Path) -> str:
    """Check a signature over a record's bytes, and return who made it.

    Parameters
    ----------
    record_bytes : bytes
        The record's file, byte for byte.
    signature : bytes
        What ``sign_record`` wrote; at most 64 KiB.
    allowed_signers : Path
        OpenSSH's ``allowed_signers`` file: ``name namespaces="automedbench" ssh-ed25519 AAAA...`` a line.

    Returns
    -------
    str
        The signer's name in ``allowed_signers``.

    Raises
    ------
    SigningError
        It is not a signature, not over these bytes, made for another purpose, or by somebody who is not listed.
    """
    if not allowed_signers.is_file():
        raise SigningError(f"{allowed_signers}: expected a file of allowed signers")
    with _as_file(signature) as path:
        listed = ["-f", str(allowed_signers), "-s", str(path)]
        names = (
            _run(["-Y", "find-principals", *listed], b"", "no listed signer made it").decode().splitlines()
        )
        if not names:
            raise SigningError("no listed signer made it")
        said = _run(["-Y", "verify", "-n", NAMESPACE, "-I", names[0], *listed], record_bytes)
    match = _SIGNER.search(said.decode(errors="replace"))
    if match is None:
        raise SigningError("ssh-keygen did not call the signature good")
    return match[1]


def require_signature(record_bytes: bytes, signature: bytes) -> None:
    """Check that a signature is one over a record's bytes, whoever made it, and holds nothing else.

    Raises
    ------
    SigningError
        It is not.
    """
    if not _ARMOURED.fullmatch(signature):
        raise SigningError("is no SSH signature, or holds more than one")
    with _as_file(signature) as path:
        _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(path)], record_bytes)


def ssh_keygen() -> str:
    """The program that makes and reads signatures.

    Raises
    ------
    SigningError
        It is not installed.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise SigningError("ssh-keygen not found; install openssh-client")
    return program


@contextmanager
def _as_file(signature: bytes) -> Iterator[Path]:
    if len(signature) > MAX_SIGNATURE:
        raise SigningError(f"the signature has {len(signature)} bytes, at most {MAX_SIGNATURE} are read")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.sig"
        path.write_bytes(signature)
        yield path


def _run(arguments: list[str], content: bytes, otherwise: str | None = None) -> bytes:
    program = ssh_keygen()
    try:
        done = subprocess.run([program, *arguments], input=content, capture_output=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise SigningError(f"ssh-keygen gave no answer within {_PATIENCE} s") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise SigningError(otherwise or (words[-1] if words else "ssh-keygen refused"))
    return done.stdout
