"""What the stand-in Hub keeps of a repository: commits, references and pull requests, in memory."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LFS_SUFFIXES = (".parquet", ".zst", ".gz", ".zip", ".png", ".jpg", ".webp", ".npy", ".bin")
LFS_BYTES = 10 << 20


@dataclass(frozen=True)
class Entry:
    """One file of a commit. ``oid`` is git's: of the content, or of the pointer to an LFS object."""

    sha256: str
    size: int
    oid: str
    lfs: bool

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def row(self, path: str) -> dict[str, Any]:
        """As ``tree`` and ``paths-info`` list it."""
        pointer = {"oid": self.sha256, "size": self.size, "pointerSize": 134}
        return {"type": "file", "oid": self.oid, "size": self.size, "path": path} | (
            {"lfs": pointer} if self.lfs else {}
        )


def is_lfs(path: str, size: int) -> bool:
    return path.endswith(LFS_SUFFIXES) or size > LFS_BYTES


def entry_of(content: bytes, *, lfs: bool) -> Entry:
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
    )
    stored = pointer if lfs else content
    return Entry(sha256, len(content), hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest(), lfs)


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    files: dict[str, Entry] = field(repr=False)
    title: str
    message: str
    author: str
    date: str


@dataclass
class Pull:
    """A pull request; its commits lie under ``refs/pr/<number>``."""

    repo: str
    number: int
    title: str
    author: str
    base: str
    status: str = "draft"
    merged: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        return {
            "num": self.number, "title": self.title, "author": {"name": self.author}, "createdAt": _now(),
            "status": self.status, "repo": {"name": self.repo, "type": "dataset"}, "isPullRequest": True,
        }  # fmt: skip

    def details(self) -> dict[str, Any]:
        changes = {"base": "refs/heads/main", "mergeCommitId": self.merged}
        return self.row() | {"events": self.events, "filesWithConflicts": [], "changes": changes, "diff": ""}

    def event(self, author: str, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        given = {"id": str(len(self.events)), "type": kind, "createdAt": _now(), "author": {"name": author}}
        self.events.append(given | {"data": data})
        return self.events[-1]

    def comment(self, author: str, text: str) -> dict[str, Any]:
        latest = {"raw": text, "html": "", "updatedAt": _now(), "author": {"name": author}}
        return self.event(author, "comment", {"edited": False, "hidden": False, "latest": latest})


class Repo:
    """Commits by oid, and names that point to them."""

    def __init__(self, name: str, private: bool) -> None:
        self.name, self.private, self.gated = name, private, False
        self.commits: dict[str, Commit] = {}
        self.refs: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.pulls: list[Pull] = []
        self._ticks = itertools.count()

    def commit(self, revision: str) -> Commit:
        """The commit that a branch, tag, pull request or oid names; KeyError where there is none."""
        return self.commits[self.refs.get(revision) or self.tags.get(revision) or revision]

    def history(self, revision: str) -> Iterator[Commit]:
        oid: str | None = self.commit(revision).oid
        while oid:
            yield self.commits[oid]
            oid = self.commits[oid].parent

    def add(self, ref: str, files: dict[str, Entry], title: str, message: str, author: str) -> Commit:
        parent = self.refs.get(ref)
        seed = json.dumps([self.name, parent, title, next(self._ticks), sorted(files)])
        made = Commit(hashlib.sha1(seed.encode()).hexdigest(), parent, files, title, message, author, _now())
        self.commits[made.oid] = made
        self.refs[ref] = made.oid
        return made

    def open_pull(self, title: str, text: str, author: str) -> int:
        pull = Pull(self.name, len(self.pulls) + 1, title, author, self.refs["main"])
        pull.comment(author, text)
        self.pulls.append(pull)
        self.refs[f"refs/pr/{pull.number}"] = self.refs["main"]
        return pull.number

    def merge(self, number: int, author: str) -> list[str]:
        """Take a pull request's changes into main; the paths that both sides changed, where there are any."""
        pull = self.pulls[number - 1]
        base, head = self.commits[pull.base].files, self.commit(f"refs/pr/{number}").files
        main = dict(self.commit("main").files)
        changed = {path for path in base.keys() | head.keys() if base.get(path) != head.get(path)}
        conflicts = sorted(path for path in changed if main.get(path) not in (base.get(path), head.get(path)))
        if conflicts:
            return conflicts
        for path in changed:
            main.pop(path, None)
            if path in head:
                main[path] = head[path]
        pull.merged = self.add("main", main, f"{pull.title} (#{number})", "", author).oid
        pull.status = "merged"
        return []


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
