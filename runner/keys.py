"""Keys of providers: from the environment or from the system's keyring, never from a file or a command line."""

from __future__ import annotations

import importlib
import importlib.util
import os

SERVICE = "automedbench"
"""Under which name keys stand in the keyring; put one there with ``keyring set automedbench VARIABLE``."""


def find_key(variable: str) -> str | None:
    """The key that is called ``variable``, or None where it is neither in the environment nor in the keyring.

    The keyring is asked only where the package ``keyring`` is installed (the extra of that name).
    """
    if key := os.environ.get(variable, "").strip():
        return key
    if importlib.util.find_spec("keyring") is None:
        return None
    keyring = importlib.import_module("keyring")
    try:
        return (keyring.get_password(SERVICE, variable) or "").strip() or None
    except keyring.errors.KeyringError:  # no keyring runs here, or it is locked
        return None


def missing(variable: str) -> str:
    """What to do about a key that is not there, for the end of a message."""
    return f"set the environment variable {variable}, or 'keyring set {SERVICE} {variable}'"
