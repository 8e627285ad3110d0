"""Fetch what anybody may download; say exactly what to do where a licence or an account stands in the way."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from tasks.schema import HubFiles, RecordFiles, Task

RECORD_APIS: Mapping[str, str] = {
    "zenodo": "https://zenodo.org/api/records/",
    "figshare": "https://api.figshare.com/v2/articles/",
}
TIMEOUT_SECONDS = 60
ATTEMPTS, PAUSE_SECONDS = 4, 2.0
PART = ".part"
_BLOCK = 1 << 20

Say = Callable[[str], None]


class FetchError(Exception):
    """A file cannot be had; one line with what was expected, what was found and what to do."""


@dataclass(frozen=True)
class Remote:
    """One file to download. ``checksum`` is (algorithm, hexadecimal digest) where one is stated."""

    url: str
    name: str
    bytes: int | None = None
    checksum: tuple[str, str] | None = None


def fetch(task: Task, out: Path, say: Say = print, apis: Mapping[str, str] = RECORD_APIS) -> list[Path]:
    """Download the open raw data of a task into ``out``; what is there and whole is not fetched again.

    Parameters
    ----------
    out : Path
        The raw folder; it can then be given to staging once archives are unpacked.
    say
        Called with a line for each file.
    apis
        Where the record sites answer.

    Returns
    -------
    list of Path
        The files; empty where the task's data cannot be downloaded by a program (see `steps`).

    Raises
    ------
    FetchError
        A site does not answer, or a file is not what it should be.
    """
    source = task.source
    if source.access != "open":
        return []
    out.mkdir(parents=True, exist_ok=True)
    files = [download(remote, out, say) for remote in remotes(task, apis)]
    if source.hub is not None:
        files += _from_hub(source.hub, source.revision, out, say)
    return files


def is_fetchable(task: Task) -> bool:
    """Whether `fetch` gets anything."""
    source = task.source
    return source.access == "open" and bool(source.downloads or source.record or source.hub)


def steps(task: Task) -> str:
    """What a person has to do to obtain the data, with the terms, as text."""
    source = task.source
    need = {
        "open": "no account is needed, but the files have to be taken by hand or with the upstream's own tools",
        "registration": "an account or an agreement with the owner is needed",
        "credentialed": "a personal credential and a signed agreement are needed; they cannot be passed on",
    }[source.access]
    return "\n".join(
        (
            f"{task.id}: {source.dataset} cannot be fetched by this program: {need}.",
            f"  Where:   {source.url}",
            f"  Licence: {source.license}",
            f"  Leaving this machine: {_LEAVES[source.redistribution.value]}",
            f"  Steps:   {' '.join(source.acquisition.split())}",
            f"  Then:    python -m hf_datasets stage {task.id} --source RAW --out data",
        )
    )


_LEAVES = {
    "allowed": "raw data, outputs and pictures may be passed on under the licence",
    "derived": "only agents' outputs and scores may be passed on, not the data",
    "none": "nothing but scores",
}


def remotes(task: Task, apis: Mapping[str, str] = RECORD_APIS) -> list[Remote]:
    """The files that a task names by address or through a public record."""
    listed = [
        Remote(str(file.url), file.name, file.bytes, ("sha256", file.sha256) if file.sha256 else None)
        for file in task.source.downloads
    ]
    record = task.source.record
    return listed if record is None else listed + _in_record(record, apis[record.site])


def _in_record(record: RecordFiles, api: str) -> list[Remote]:
    url = f"{api}{record.record}"
    try:
        with _open(url, 0) as answer:
            entries = [_entry(record.site, entry) for entry in json.loads(answer.read())["files"]]
    except _Unreached as error:
        raise _offline(url, error) from None
    except (OSError, HTTPException) as error:
        raise FetchError(f"{url}: does not answer ({error}); try again later") from None
    except (KeyError, TypeError, ValueError) as error:
        raise FetchError(f"{url}: expected a list of files, found {type(error).__name__} ({error})") from None
    found = [entry for entry in entries if any(fnmatch(entry.name, pattern) for pattern in record.files)]
    for pattern in record.files:
        if not any(fnmatch(entry.name, pattern) for entry in found):
            names = ", ".join(entry.name for entry in entries)
            raise FetchError(f"{url}: expected a file such as {pattern}, found {names or 'none'}")
    return found


def _entry(site: str, entry: dict[str, Any]) -> Remote:
    if site == "figshare":
        url, name, digest = entry["download_url"], entry["name"], entry["computed_md5"]
    else:
        url, name, digest = entry["links"]["self"], entry["key"], entry["checksum"].removeprefix("md5:")
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"file name {name!r}")
    return Remote(url, name, int(entry["size"]), ("md5", digest))


def download(remote: Remote, folder: Path, say: Say = print) -> Path:
    """Download one file; an interrupted download goes on where it stopped, and only a whole file gets its name.

    Raises
    ------
    FetchError
        The site refuses or keeps breaking off, or size or checksum differ.
    """
    target, part = folder / remote.name, folder / f"{remote.name}{PART}"
    if target.is_file():
        if _fault(remote, target) is None:
            say(f"{remote.name}: already there")
            return target
        raise FetchError(
            f"{target}: {_fault(remote, target)}; it is not the file of {remote.url}: move it away and fetch again"
        )
    for attempt in range(1, ATTEMPTS + 1):
        start = part.stat().st_size if part.is_file() else 0
        say(f"{remote.name}: {'from the start' if not start else f'going on at {start} bytes'}")
        try:
            trouble = _append(remote.url, part, start)
        except _Unreached as error:
            if attempt == ATTEMPTS:
                raise _offline(remote.url, error) from None
            trouble = str(error)
        if trouble is None:
            break
        if attempt == ATTEMPTS:
            raise FetchError(
                f"{remote.url}: broke off {ATTEMPTS} times ({trouble}); run the same command again"
            )
        time.sleep(PAUSE_SECONDS * attempt)
    if fault := _fault(remote, part):
        part.unlink()
        raise FetchError(f"{remote.url}: {fault}; it was thrown away, fetch it again")
    part.rename(target)
    return target


def _append(url: str, part: Path, start: int) -> str | None:
    """Add what is missing to the part; the trouble in words where the connection broke."""
    try:
        with _open(url, start) as answer:
            go_on = answer.status == 206
            expected = answer.length
            with part.open("ab" if go_on else "wb") as file:
                before = file.tell()
                while block := answer.read(_BLOCK):
                    file.write(block)
                written = file.tell() - before
    except _Whole:
        return None
    except _Unreached:
        raise
    except (OSError, HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    return None if expected is None or written == expected else f"{written} of {expected} bytes came"


def _open(url: str, start: int) -> HTTPResponse:
    headers = {"User-Agent": "automedbench"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        answer: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        if error.code == 416 and start:
            raise _Whole from None
        if error.code >= 500 or error.code == 429:
            raise ConnectionError(f"HTTP {error.code}") from None
        raise FetchError(
            f"{url}: HTTP {error.code} {error.reason}; see whether the address still holds"
        ) from None
    except URLError as error:
        if start == 0 and not isinstance(error.reason, ConnectionError | TimeoutError):
            raise _offline(url, error.reason) from None
        raise _Unreached(str(error.reason)) from None
    return answer


def _offline(url: str, reason: object) -> FetchError:
    return FetchError(
        f"no network reached {urlsplit(url).netloc}; check the connection and run the same command again ({reason})"
    )


class _Unreached(ConnectionError):
    """Nothing answers at that address; perhaps it will in a moment."""


class _Whole(Exception):
    """The asked range begins at the end of the file: nothing is missing."""


def _fault(remote: Remote, path: Path) -> str | None:
    """What is wrong with a downloaded file, in words."""
    size = path.stat().st_size
    if remote.bytes is not None and size != remote.bytes:
        return f"expected {remote.bytes} bytes, found {size}"
    if remote.checksum is None:
        return None
    algorithm, expected = remote.checksum
    with path.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    return None if found == expected else f"expected {algorithm} {expected}, found {found}"


def _from_hub(hub: HubFiles, revision: str | None, out: Path, say: Say) -> list[Path]:
    from hf_datasets.hub import Hub, HubError

    say(f"{hub.repo}: {', '.join(hub.files)} at {revision or 'the newest revision'}")
    try:
        Hub(hub.repo, say=say).snapshot(list(hub.files), revision, folder=out)
    except HubError as error:
        raise FetchError(str(error)) from None
    files = sorted(
        path
        for path in out.rglob("*")
        if path.is_file() and any(fnmatch(path.relative_to(out).as_posix(), pattern) for pattern in hub.files)
    )
    if not files:
        raise FetchError(f"{hub.repo}: expected {', '.join(hub.files)}, found no such file on the Hub")
    return files
