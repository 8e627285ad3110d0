"""What an agent handed in, packed for publication as it is, and unpacked again with every digest checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from evaluator.files import sha256_file
from evaluator.readers.errors import ReadError
from evaluator.readers.gunzip import Gunzip
from evaluator.submission import (
    MANIFEST_NAME,
    SubmissionManifest,
    dump_submission_manifest,
    load_submission_manifest,
)
from evaluator.untrusted import Refused, open_regular
from hf_datasets.archives import ArchiveError, read_tar, write_tar
from hf_datasets.chunks import CHUNK_BYTES
from hf_datasets.phi import Finding, screen_text
from hf_datasets.redact import Redactor

MAX_OUTPUT_BYTES = 1 << 30
MAX_OUTPUTS_BYTES = 8 << 30
MAX_FILES = 50_000
_TEXTS = (".txt", ".json", ".csv", ".md")
_TEXT_SCREENED = 1 << 20


def pack_outputs(submission: Path, target: Path, redactor: Redactor, findings: list[Finding]) -> Path | None:
    """Pack the collected outputs with their manifest into ``target``; None where there are none.

    They keep their bytes, because their digests are the run's. A secret or a patient's data in one of them is a
    finding. The agent's plan is not packed.
    """
    import zstandard

    manifest = load_submission_manifest(submission)
    if manifest is None:
        return None
    before = len(findings)
    listed = dump_submission_manifest(manifest)
    if redactor.holds_secret(listed):
        findings.append(Finding(f"submission/{MANIFEST_NAME}", "a file name in the workspace holds a secret"))
    for file in manifest.files:
        findings += _screened(submission / file.path, f"submission/{file.path}", redactor)
    if len(findings) > before:
        return None
    members = [(file.path, submission / file.path) for file in manifest.files]
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        target.open("wb") as raw,
        zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as packed,
    ):
        write_tar([(MANIFEST_NAME, submission / MANIFEST_NAME), *members], packed)
    return target


def unpack_outputs(archive: Path, folder: Path, *, most_bytes: int = MAX_OUTPUTS_BYTES) -> SubmissionManifest:
    """Unpack outputs that somebody published into an empty folder and check them against their own manifest.

    Raises
    ------
    ArchiveError
        The archive is damaged or hostile, or a file is not the one that its manifest lists.
    """
    import zstandard

    folder.mkdir(parents=True, exist_ok=True)
    with archive.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as packed:
        try:
            for name, content, _ in read_tar(packed, most_files=MAX_FILES, most_bytes=most_bytes):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    while block := content.read(CHUNK_BYTES):
                        out.write(block)
        except (zstandard.ZstdError, FileExistsError, NotADirectoryError) as error:
            raise ArchiveError(f"is damaged: {error}") from None
    manifest = load_submission_manifest(folder)
    if manifest is None:
        raise ArchiveError(f"holds no readable {MANIFEST_NAME}")
    if sorted(file.path for file in manifest.files) != _names(folder):
        raise ArchiveError(f"holds other files than its {MANIFEST_NAME} lists")
    for file in manifest.files:
        if sha256_file(folder / file.path) != file.sha256:
            raise ArchiveError(f"{file.path} is not the file that {MANIFEST_NAME} lists")
    return manifest


def _names(folder: Path) -> list[str]:
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if path != MANIFEST_NAME)


def _screened(path: Path, name: str, redactor: Redactor) -> list[Finding]:
    """What forbids to publish one output, also inside of its compression."""
    try:
        with open_regular(path, MAX_OUTPUT_BYTES) as file:
            found = [Finding(name, "holds a secret")] if redactor.screen(_read(file)) else []
            if path.suffix == ".gz":
                file.seek(0)
                with contextlib.suppress(ReadError):  # what does not decompress for us does for nobody
                    if redactor.screen(_read(Gunzip(file, path.name))):
                        found.append(Finding(name, "holds a secret inside of its compression"))
            if path.suffix in _TEXTS:
                file.seek(0)
                found += screen_text(file.read(_TEXT_SCREENED).decode("utf-8", "replace"), name)
    except Refused as error:
        return [Finding(name, f"cannot be searched for secrets: {error.message}")]
    return found


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _read(file: _Reads) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
