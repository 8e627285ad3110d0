"""The Hugging Face Hub, a thin layer: optimistic commits, patience with busy servers, errors in one line."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.errors import HTTPError as TransportError  # type: ignore[attr-defined]  # of its HTTP client

TRIES, UNREACHED_TRIES = 6, 3
"""Attempts in all, and so many where nothing answers at the address: without a network nobody waits for a minute."""
BASE_SECONDS, MOST_SECONDS = 1.0, 60.0
LONGEST_ASKED_SECONDS = 3600.0
"""A server that asks for more patience is not waited for."""
_BUSY = {408, 409, 412, 425, 429, 500, 502, 503, 504}
"""Stale parent, rate limit, trouble of the server: worth another try from the newest head."""

Content = bytes | Path
Say = Callable[[str], None]
Result = TypeVar("Result")


class HubError(Exception):
    """The Hub refuses or cannot be reached; one line with what to do."""


class BadName(HubError):
    """That is no repository's name."""


class NoRepository(HubError):
    """There is no such repository, or this token may not see it."""


class NotReached(HubError):
    """No answer: no network, or the client is told to stay offline."""


@dataclass(frozen=True)
class Head:
    """A revision: its commit, and path -> git's oid of each file listed (an LFS file's SHA-256)."""

    sha: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """What one commit does. Files that are written and deleted at once are not allowed."""

    title: str
    write: Mapping[str, Content]
    delete: frozenset[str] = frozenset()


@dataclass
class Hub:
    """A dataset repository.

    Parameters
    ----------
    repo
        ``owner/name``.
    endpoint, token, cache
        Those of ``huggingface_hub`` by default (HF_ENDPOINT, HF_TOKEN or a login, HF_HOME).
    say
        Called with a line when it has to wait.
    """

    repo: str
    endpoint: str | None = None
    token: str | None = None
    cache: Path | None = None
    say: Say = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    jitter: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repo):
            raise BadName(f"expected a repository as owner/name, found {self.repo!r}")
        self.api = HfApi(endpoint=self.endpoint, token=self.token)
        self.host = urlsplit(self.api.endpoint).netloc

    # --- reading ---

    def head(self, folders: Iterable[str], revision: str | None = None) -> Head:
        """The newest commit of a revision and the files at its top and, at any depth, in some folders of its top.

        Raises
        ------
        NoRepository, NotReached, HubError
        """

        def look() -> Head:
            sha = str(self.api.dataset_info(self.repo, revision=revision).sha)
            top = list(self._tree(sha, None))
            files = {path: oid for path, oid in top if oid}
            there = {path for path, _ in top}
            for folder in folders:
                if folder in there:
                    files |= {path: oid for path, oid in self._tree(sha, folder) if oid}
            return Head(sha, files)

        return self._patient(look)

    def _tree(self, sha: str, folder: str | None) -> Iterator[tuple[str, str | None]]:
        """Path and oid of what lies in a folder at any depth, or at the top; a folder has no oid."""
        entries = self.api.list_repo_tree(
            self.repo, path_in_repo=folder, recursive=folder is not None, revision=sha, repo_type="dataset"
        )
        for entry in entries:
            lfs = getattr(entry, "lfs", None)
            yield entry.path, lfs.sha256 if lfs else getattr(entry, "blob_id", None)

    def read(self, path: str, revision: str) -> bytes:
        """The content of one file at a commit, from the cache where it is there already."""

        def fetch() -> bytes:
            local = self.api.hf_hub_download(
                self.repo, path, repo_type="dataset", revision=revision, cache_dir=self.cache
            )
            return Path(local).read_bytes()

        return self._patient(fetch)

    def download(self, path: str, revision: str, folder: Path) -> Path:
        """One file at a commit, below ``folder`` and in no cache: for large files that are read once."""

        def fetch() -> Path:
            return Path(
                self.api.hf_hub_download(
                    self.repo, path, repo_type="dataset", revision=revision, local_dir=folder
                )
            )

        return self._patient(fetch)

    def snapshot(
        self, patterns: list[str], revision: str | None, *, offline: bool = False, folder: Path | None = None
    ) -> Path:
        """Folder of the cache, or the given one, with the files that fit; ``offline``: as they were pulled last."""

        def fetch() -> Path:
            return Path(
                snapshot_download(
                    self.repo, repo_type="dataset", revision=revision, cache_dir=self.cache, allow_patterns=patterns,
                    endpoint=self.api.endpoint, token=self.token, local_files_only=offline, local_dir=folder,
                )
            )  # fmt: skip

        return self._patient(fetch)

    # --- writing ---

    def create(self, *, private: bool) -> None:
        """Make the repository where there is none; an existing one stays as it is."""
        try:
            self._patient(lambda: self.api.dataset_info(self.repo))
        except NoRepository:
            self._patient(
                lambda: self.api.create_repo(self.repo, repo_type="dataset", private=private, exist_ok=True)
            )

    def pull_request(self, title: str, description: str) -> int:
        """Number of the open pull request with that title; opened where there is none."""

        def open_one() -> int:
            for found in self.api.get_repo_discussions(
                self.repo, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
            ):
                if found.title == title:
                    return found.num
            made = self.api.create_pull_request(
                self.repo, title=title, description=description, repo_type="dataset"
            )
            return made.num

        return self._patient(open_one)

    def commit(
        self, build: Callable[[Head], Change | None], folders: Iterable[str], revision: str | None = None
    ) -> str:
        """Commit what ``build`` makes of the newest head; the commit that holds it.

        ``build`` returns None where the head holds all of it already. It is called again after every trouble, so
        what another writer added meanwhile is kept, and a commit that landed although its answer was lost is seen.

        Raises
        ------
        NoRepository, NotReached, HubError
            Also after so many tries that others were always faster.
        """
        folders = tuple(folders)

        def once() -> str:
            head = self.head(folders, revision)
            change = build(head)
            return head.sha if change is None else self._send(change, head.sha, revision)

        return self._patient(once)

    def _send(self, change: Change, parent: str, revision: str | None) -> str:
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(path, content) for path, content in change.write.items()
        ]
        operations += [CommitOperationDelete(path) for path in sorted(change.delete)]
        done = self.api.create_commit(
            self.repo, operations, commit_message=change.title, repo_type="dataset", revision=revision,
            parent_commit=parent,
        )  # fmt: skip
        return str(done.oid)

    # --- patience ---

    def _patient(self, action: Callable[[], Result]) -> Result:
        for attempt in range(1, TRIES + 1):
            with self._in_one_line():
                try:
                    return action()
                except (HfHubHTTPError, TransportError) as error:
                    wait = self._wait(error, attempt)
                    if wait is None or attempt == TRIES:
                        raise
                    if wait > BASE_SECONDS * 2:
                        self.say(
                            f"{self.host} is busy ({_status(error) or 'no answer'}); waiting {wait:.0f} s"
                        )
            self.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _wait(self, error: Exception, attempt: int) -> float | None:
        """Seconds before the next try; None where another one would not help."""
        status = _status(error)
        if isinstance(
            error, OfflineModeIsEnabled | EntryNotFoundError | RepositoryNotFoundError | RevisionNotFoundError
        ):
            return None
        if status is not None and status not in _BUSY:
            return None
        if type(error).__name__ == "ConnectError" and attempt == UNREACHED_TRIES:
            return None
        asked = _asked_seconds(error)
        if asked is not None:
            return asked + self.jitter.random() if asked <= LONGEST_ASKED_SECONDS else None
        return min(MOST_SECONDS, BASE_SECONDS * 2.0 ** (attempt - 1)) * (0.5 + self.jitter.random() / 2)

    @contextmanager
    def _in_one_line(self) -> Iterator[None]:
        try:
            yield
        except tuple(kind for kind, _, _ in _REASONS) as error:
            raise self._reason(error) from None

    def _reason(self, error: Exception) -> HubError:
        kind, ours, words = next(reason for reason in _REASONS if isinstance(error, reason[0]))
        if kind is HfHubHTTPError:
            return HubError(self._refusal(error))
        return ours(words.format(repo=self.repo, host=self.host, words=_words(error)))

    def _refusal(self, error: Exception) -> str:
        status = _status(error)
        if status == 401:
            return f"{self.host} asks who you are: log in with 'hf auth login' or set HF_TOKEN"
        if status == 403:
            return f"{self.repo}: this token may not do that; use one with write access, or open a pull request (--pr)"
        if status == 412:
            return f"{self.repo}: other writers were faster {TRIES} times; run this again"
        if status in _BUSY:
            return (
                f"{self.host} stayed busy ({status}) for {TRIES} tries; what is there stays, run this again"
            )
        return f"{self.repo}: {self.host} refuses ({status}): {_words(error)}"


_REASONS: tuple[tuple[type[Exception], type[HubError], str], ...] = (
    (GatedRepoError, HubError, "{repo} is gated: ask for access on its page at {host}, then run this again"),
    (
        RepositoryNotFoundError,
        NoRepository,
        "{repo}: no such dataset repository at {host}, or no access to it; see the name and the token "
        "(hf auth login, or HF_TOKEN)",
    ),
    (RevisionNotFoundError, HubError, "{repo}: no such branch, tag or commit at {host}"),
    (LocalEntryNotFoundError, NotReached, "no network reached {host}, and {repo} is not in the cache"),
    (EntryNotFoundError, HubError, "{repo}: {words}"),
    (HFValidationError, BadName, "expected a repository as owner/name, found {repo!r}: {words}"),
    (
        OfflineModeIsEnabled,
        NotReached,
        "HF_HUB_OFFLINE is set, so {host} is not asked; unset it to reach {repo}",
    ),
    (HfHubHTTPError, HubError, ""),
    (
        TransportError,
        NotReached,
        "no network reached {host}; check the connection and run this again ({words})",
    ),
)
"""Errors of the client, the narrower before the wider, and what they become."""


def git_oid(content: bytes) -> str:
    """What git calls a regular file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    return None if response is None else int(response.status_code)


def _asked_seconds(error: Exception) -> float | None:
    """What the server asks for, by Retry-After or by the window of its rate limit."""
    response = getattr(error, "response", None)
    if response is None:
        return None
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdecimal():
        return float(asked)
    if asked:
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except ValueError:
            return None
    window = [
        part for part in response.headers.get("RateLimit", "").split(";") if part.strip().startswith("t=")
    ]
    return float(window[0].strip()[2:]) if window and window[0].strip()[2:].isdecimal() else None


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
