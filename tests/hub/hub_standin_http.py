"""How the stand-in Hub answers: one method for each address that the clients ask for."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_standin_forms import Answer, Asked, Fault, HubError
from hub_standin_repo import Commit, Entry, Repo, entry_of, is_lfs

if TYPE_CHECKING:
    from hub_standin import HubStandIn

USERS = {"hf_writer": "writer", "hf_second": "second", "hf_reader": "reader"}
WRITERS = {"writer", "second"}
PAGE = 1000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def hub(self) -> HubStandIn:
        return self.server.hub  # type: ignore[attr-defined,no-any-return]

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        split = urlsplit(self.path)
        self.route, self.query = split.path, parse_qs(split.query, keep_blank_values=True)
        self.body = self._read_body()
        asked = f"{self.command} {self.route}"
        self.hub.run_hook(asked)
        fault = self.hub.fault_for(asked)
        if fault and fault.cut is None and not fault.landed:
            answer = _refusal(fault)
        else:
            answer = self._answered()
            if fault and fault.cut is None:
                answer = _refusal(fault)
        with self.hub.lock:
            self.hub.requests.append(
                Asked(
                    self.command,
                    self.route,
                    split.query,
                    answer.status,
                    dict(self.headers.items()),
                    self.body,
                )
            )
        self._send(answer, fault.cut if fault else None)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answered(self) -> Answer:
        try:
            for method, pattern, serve in ROUTES:
                found = pattern.fullmatch(self.route)
                if found and self.command in method:
                    given = {name: unquote(value) for name, value in found.groupdict(default="").items()}
                    with self.hub.lock:
                        result = serve(self, **given)
                    return result if isinstance(result, Answer) else Answer(json.dumps(result).encode())
            raise HubError(404, "NotFound", f"the stand-in has no {self.command} {self.route}")
        except HubError as error:
            return Answer(json.dumps({"error": str(error)}).encode(), error.headers, error.status)

    def _send(self, answer: Answer, cut: int | None) -> None:
        if answer.status == 0:
            self.close_connection = True
            return
        body = answer.body
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Request-Id", "standin")
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    # who may do what

    @property
    def user(self) -> str | None:
        return USERS.get((self.headers.get("Authorization") or "").removeprefix("Bearer ").strip())

    def _repo(self, name: str, *, write: bool = False, content: bool = False) -> Repo:
        repo, user = self.hub.repos.get(name), self.user
        if repo is None or (repo.private and user not in WRITERS):
            raise HubError(404 if user else 401, "RepoNotFound", "Repository not found")
        if write and user not in WRITERS:
            raise HubError(403 if user else 401, "Forbidden", "You need write access to this repository")
        if content and repo.gated and user not in WRITERS:
            raise HubError(403 if user else 401, "GatedRepo", f"Access to dataset {name} is restricted")
        return repo

    def _commit(self, name: str, revision: str, **rights: bool) -> tuple[Repo, Commit]:
        repo = self._repo(name, **rights)
        try:
            return repo, repo.commit(revision)
        except KeyError:
            raise HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}") from None

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}

    # repositories

    def whoami(self) -> object:
        if self.user is None:
            raise HubError(401, "Unauthorized", "Invalid user token.")
        token = {"type": "access_token", "accessToken": {"displayName": "t", "role": "write"}}
        return {"type": "user", "id": self.user, "name": self.user, "orgs": [], "auth": token}

    def create_repo(self) -> object:
        if self.user not in WRITERS:
            raise HubError(403 if self.user else 401, "Forbidden", "You don't have the rights to create this")
        asked = self.json
        name = f"{asked.get('organization') or self.user}/{asked['name']}"
        private = bool(asked.get("private")) or asked.get("visibility") == "private"
        url = f"{self.hub.url}/datasets/{name}"
        if self.hub.create(name, private) is None:
            body = json.dumps({"error": "You already created this dataset repo", "url": url}).encode()
            return Answer(body, status=409)
        return {"url": url, "name": name, "id": name}

    def info(self, repo: str, revision: str) -> object:
        found, commit = self._commit(repo, revision or "main")
        date = found.history("main").__next__().date
        return {
            "_id": "0", "id": repo, "author": repo.split("/")[0], "sha": commit.oid, "private": found.private,
            "gated": "manual" if found.gated else False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
            "lastModified": date, "createdAt": date, "siblings": [{"rfilename": path} for path in sorted(commit.files)],
        }  # fmt: skip

    def tree(self, repo: str, revision: str, below: str) -> object:
        _, commit = self._commit(repo, revision, content=True)
        prefix = f"{below.strip('/')}/" if below.strip("/") else ""
        rows = list(
            _tree_rows(commit, prefix, recursive=self.query.get("recursive", [""])[0].lower() == "true")
        )
        if prefix and not rows:
            raise HubError(404, "EntryNotFound", f"{below} does not exist on {revision}")
        start = int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(rows):
            rest = "&".join(f"{key}={value[0]}" for key, value in self.query.items() if key != "cursor")
            headers = {"Link": f'<{self.hub.url}{self.route}?{rest}&cursor={start + PAGE}>; rel="next"'}
        return Answer(json.dumps(rows[start : start + PAGE]).encode(), headers)

    def paths_info(self, repo: str, revision: str) -> object:
        _, commit = self._commit(repo, revision, content=True)
        kind = self.headers.get("Content-Type") or ""
        paths = self.json["paths"] if "json" in kind else parse_qs(self.body.decode())["paths"]
        return [commit.files[path].row(path) for path in paths if path in commit.files]

    def refs(self, repo: str) -> object:
        found = self._repo(repo)
        branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": found.refs["main"]}]
        pulls = [
            {"name": ref, "ref": ref, "targetCommit": oid}
            for ref, oid in found.refs.items()
            if ref.startswith("refs/pr/")
        ]
        tags = [
            {"name": name, "ref": f"refs/tags/{name}", "targetCommit": oid}
            for name, oid in found.tags.items()
        ]
        return {"branches": branches, "converts": [], "tags": tags, "pullRequests": pulls}

    def commits(self, repo: str, revision: str) -> object:
        found, _ = self._commit(repo, revision)
        return [
            {"id": one.oid, "title": one.title, "message": one.message, "date": one.date,
             "authors": [{"user": one.author, "avatar": ""}]}
            for one in found.history(revision)
        ]  # fmt: skip

    def tag(self, repo: str, revision: str) -> object:
        found, commit = self._commit(repo, revision, write=True)
        found.tags[self.json["tag"]] = commit.oid
        return {}

    # writing

    def preupload(self, repo: str, revision: str) -> object:
        _, commit = self._commit(repo, revision, write=True)
        files = self.json["files"]
        if len(files) > 256:
            raise HubError(400, "BadRequest", f"{len(files)} files in one preupload call, at most 256")
        return {
            "files": [
                {"path": one["path"], "uploadMode": "lfs" if is_lfs(one["path"], one["size"]) else "regular",
                 "shouldIgnore": False, "oid": old.oid if (old := commit.files.get(one["path"])) else None}
                for one in files
            ]
        }  # fmt: skip

    def lfs_batch(self, repo: str) -> object:
        self._repo(repo, write=True)
        objects = []
        for one in self.json["objects"]:
            row = {"oid": one["oid"], "size": one["size"]}
            if one["oid"] not in self.hub.blobs:
                row["actions"] = {
                    "upload": {"href": f"{self.hub.url}/_lfs/{one['oid']}", "header": {}},
                    "verify": {"href": f"{self.hub.url}/_lfs/verify", "header": {}},
                }
            objects.append(row)
        return {"transfer": "basic", "objects": objects}

    def lfs_put(self, oid: str) -> object:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise HubError(400, "BadOid", "the content is not of this SHA-256")
        self.hub.blobs[oid] = self.body
        return {}

    def lfs_verify(self) -> object:
        if self.json["oid"] not in self.hub.blobs:
            raise HubError(404, "NotFound", "the object was not uploaded")
        return {}

    def commit_files(self, repo: str, revision: str) -> object:
        found, parent = self._commit(repo, revision, write=True)
        lines = [json.loads(line) for line in self.body.splitlines() if line.strip()]
        head = next(line["value"] for line in lines if line["key"] == "header")
        if head.get("parentCommit") not in (None, parent.oid):
            raise HubError(
                412, "PreconditionFailed", "A commit has happened since. Please refresh and try again."
            )
        files = dict(parent.files)
        for line in lines:
            self._apply(files, line["key"], line["value"])
        pull = {}
        if self.query.get("create_pr") == ["1"]:
            number = found.open_pull(head["summary"], head.get("description", ""), str(self.user))
            revision, pull = f"refs/pr/{number}", {"pullRequestUrl": self._pull_url(repo, number)}
        oid = parent.oid
        if files != parent.files:
            oid = found.add(revision, files, head["summary"], head.get("description", ""), str(self.user)).oid
        url = f"{self.hub.url}/datasets/{repo}/commit/{oid}"
        return {"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": "", **pull}

    def _apply(self, files: dict[str, Entry], key: str, value: dict[str, Any]) -> None:
        if key == "file":
            files[value["path"]] = self.hub.store(value["path"], base64.b64decode(value["content"]))
        elif key == "lfsFile":
            if value["oid"] not in self.hub.blobs:
                raise HubError(400, "BadCommit", f"LFS object {value['oid']} was not uploaded")
            files[value["path"]] = entry_of(self.hub.blobs[value["oid"]], lfs=True)
        elif key == "deletedFile" and files.pop(value["path"], None) is None:
            raise HubError(404, "EntryNotFound", f"{value['path']} does not exist")
        elif key == "deletedFolder":
            for path in [path for path in files if path.startswith(value["path"].rstrip("/") + "/")]:
                del files[path]

    # pull requests

    def _pull_url(self, repo: str, number: int) -> str:
        return f"{self.hub.url}/datasets/{repo}/discussions/{number}"

    def open_discussion(self, repo: str) -> object:
        if self.user is None:
            raise HubError(401, "Unauthorized", "Log in to open a pull request")
        asked = self.json
        number = self._repo(repo).open_pull(asked["title"], asked.get("description", ""), self.user)
        return {"num": number, "pullRequest": bool(asked.get("pullRequest"))}

    def discussions(self, repo: str) -> object:
        found = self._repo(repo)
        rows = [pull.row() for pull in found.pulls]
        if status := self.query.get("status"):
            rows = [
                row
                for row in rows
                if row["status"] in status or (status == ["open"] and row["status"] == "draft")
            ]
        return {"count": len(rows), "start": 0, "discussions": rows}

    def discussion(self, repo: str, number: str) -> object:
        try:
            return self._repo(repo).pulls[int(number) - 1].details()
        except IndexError:
            raise HubError(404, "NotFound", "no such discussion") from None

    def merge(self, repo: str, number: str) -> object:
        """Merge file by file; what both sides changed is a conflict."""
        found = self._repo(repo, write=True)
        if conflicts := found.merge(int(number), str(self.user)):
            raise HubError(409, "Conflict", f"conflicts: {', '.join(conflicts)}")
        return {}

    def comment(self, repo: str, number: str) -> object:
        pull = self._repo(repo).pulls[int(number) - 1]
        return {"newMessage": pull.comment(str(self.user), self.json["comment"])}

    def set_status(self, repo: str, number: str) -> object:
        pull = self._repo(repo, write=True).pulls[int(number) - 1]
        pull.status = self.json["status"]
        return {"newStatus": pull.event(str(self.user), "status-change", {"status": pull.status})}

    # reading

    def resolve(self, repo: str, revision: str, path: str) -> object:
        _, commit = self._commit(repo, revision, content=True)
        headers = {"X-Repo-Commit": commit.oid}
        entry = commit.files.get(path)
        if entry is None:
            raise HubError(404, "EntryNotFound", "Entry not found", **headers)
        headers |= {
            "ETag": f'"{entry.etag}"',
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        if entry.lfs:
            headers |= {"X-Linked-ETag": f'"{entry.sha256}"', "X-Linked-Size": str(entry.size)}
        content = self.hub.blobs[entry.sha256]
        if self.command == "HEAD":
            return Answer(b"", headers | {"Content-Length": str(len(content))})
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked is None:
            return Answer(content, headers)
        start, end = int(asked[1]), int(asked[2] or len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        return Answer(content[start : end + 1], headers, 206)


def _refusal(fault: Fault) -> Answer:
    body = json.dumps({"error": f"made to fail with {fault.status}"}).encode()
    return Answer(body, fault.headers, fault.status)


def _tree_rows(commit: Commit, prefix: str, *, recursive: bool) -> Iterator[dict[str, Any]]:
    folders: set[str] = set()
    for path, entry in sorted(commit.files.items()):
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            name = prefix + "/".join(parts[:depth])
            if name not in folders:
                folders.add(name)
                yield {
                    "type": "directory",
                    "oid": hashlib.sha1(name.encode()).hexdigest(),
                    "size": 0,
                    "path": name,
                }
        if recursive or len(parts) == 1:
            yield entry.row(path)


_REPO = r"/api/datasets/(?P<repo>[^/]+/[^/]+)"
ROUTES = [
    (methods, re.compile(pattern), serve)
    for methods, pattern, serve in (
        ({"GET"}, r"/api/whoami-v2", Handler.whoami),
        ({"POST"}, r"/api/validate-yaml", lambda self: {"errors": [], "warnings": []}),
        ({"POST"}, r"/api/repos/create", Handler.create_repo),
        ({"GET"}, _REPO + r"(/revision/(?P<revision>.+))?", Handler.info),
        ({"GET"}, _REPO + r"/tree/(?P<revision>[^/]+)(/(?P<below>.*))?", Handler.tree),
        ({"POST"}, _REPO + r"/paths-info/(?P<revision>.+)", Handler.paths_info),
        ({"GET"}, _REPO + r"/refs", Handler.refs),
        ({"GET"}, _REPO + r"/commits/(?P<revision>.+)", Handler.commits),
        ({"POST"}, _REPO + r"/tag/(?P<revision>.+)", Handler.tag),
        ({"POST"}, _REPO + r"/preupload/(?P<revision>.+)", Handler.preupload),
        ({"POST"}, _REPO + r"/commit/(?P<revision>.+)", Handler.commit_files),
        ({"GET"}, _REPO + r"/discussions", Handler.discussions),
        ({"POST"}, _REPO + r"/discussions", Handler.open_discussion),
        ({"GET"}, _REPO + r"/discussions/(?P<number>\d+)", Handler.discussion),
        ({"POST"}, _REPO + r"/discussions/(?P<number>\d+)/merge", Handler.merge),
        ({"POST"}, _REPO + r"/discussions/(?P<number>\d+)/comment", Handler.comment),
        ({"POST"}, _REPO + r"/discussions/(?P<number>\d+)/status", Handler.set_status),
        ({"POST"}, r"/datasets/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", Handler.lfs_batch),
        ({"PUT"}, r"/_lfs/(?P<oid>[0-9a-f]{64})", Handler.lfs_put),
        ({"POST"}, r"/_lfs/verify", Handler.lfs_verify),
        (
            {"GET", "HEAD"},
            r"/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)",
            Handler.resolve,
        ),
    )
]
