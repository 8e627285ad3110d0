"""Who may be asked: the listed hosts, the operator's package index, and never the places of the task's own labels."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import yaml

from tasks.schema import Source, Strict

HOSTS = Path(__file__).with_name("hosts.yaml")
PORTS = (80, 443)
DEEPEST_ESCAPE = 3
ALIAS = "package-index"
"""Under this name the operator's index stands in the log, and a plain-http one in the sandbox."""

Rule = Literal["packages", "hubs", "models", "operator", "labels", "unlisted", "port", "address", "request"]

SITES = {"zenodo": ("zenodo.org",), "figshare": ("figshare.com",)}


class Hosts(Strict):
    """``hosts.yaml``."""

    packages: tuple[str, ...]
    hubs: tuple[str, ...]
    models: tuple[str, ...]


@cache
def listed_hosts() -> Hosts:
    return Hosts.model_validate(yaml.safe_load(HOSTS.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Endpoint:
    """One host and port of the operator's package index. ``private``: it may lie on a private address."""

    host: str
    port: int
    private: bool = False


@dataclass(frozen=True)
class Decision:
    """What is to be done with one request. ``shown`` is what the log says instead of the host."""

    allowed: bool
    rule: Rule
    host: str
    port: int
    shown: str
    reason: str = ""
    private: bool = False


@dataclass(frozen=True)
class Rules:
    """The rules of one run.

    Parameters
    ----------
    labels
        Hosts where the task's data and labels lie.
    repos
        Dataset repositories of the task on a shared hub, as ``owner/name``; refused where a path can be seen.
    operator
        Hosts of the operator's package index; the first is what ``package-index`` means.
    """

    labels: frozenset[str] = frozenset()
    repos: frozenset[str] = frozenset()
    operator: tuple[Endpoint, ...] = ()
    hosts: Hosts = field(default_factory=listed_hosts)

    @classmethod
    def of(cls, source: Source, operator: tuple[Endpoint, ...] = ()) -> Rules:
        return cls(label_hosts(source), dataset_repos(source), operator)

    def decide(self, host: str, port: int, path: str | None = None) -> Decision:
        """Whether ``host:port`` may be asked; ``path`` is None where TLS hides it."""
        host = host.lower().rstrip(".")
        if endpoint := self._operators(host, port):
            return Decision(True, "operator", endpoint.host, endpoint.port, ALIAS, private=endpoint.private)

        def refuse(rule: Rule, reason: str) -> Decision:
            return Decision(False, rule, host, port, host, reason)

        group = self._group(host)
        if _among(host, self.labels) and group not in ("packages", "hubs"):
            return refuse(
                "labels", f"{host} holds data or labels of this task and is not reachable during a run"
            )
        if path is not None and (repo := self._names_dataset(path)):
            return refuse("labels", f"{repo} is the data set of this task and is not reachable during a run")
        if group is None:
            return refuse(
                "unlisted", f"{host} is not among the package indexes and model hubs that a run may reach"
            )
        if port not in PORTS:
            return refuse("port", f"only ports 80 and 443 of {host} are reachable, not {port}")
        return Decision(True, group, host, port, host)

    def _operators(self, host: str, port: int) -> Endpoint | None:
        if host == ALIAS and self.operator:
            return self.operator[0]
        return next((one for one in self.operator if (one.host, one.port) == (host, port)), None)

    def _group(self, host: str) -> Literal["packages", "hubs", "models"] | None:
        if _listed(host, self.hosts.packages):
            return "packages"
        if _listed(host, self.hosts.hubs):
            return "hubs"
        return "models" if _listed(host, self.hosts.models) else None

    def _names_dataset(self, path: str) -> str | None:
        asked = f"{_as_served(path)}/"
        return next((repo for repo in self.repos if f"/datasets/{repo}/".lower() in asked), None)


def label_hosts(source: Source) -> frozenset[str]:
    """Every host that a task's source names."""
    urls = [source.url, *(download.url for download in source.downloads)]
    hosts = {str(url.host).lower() for url in urls}
    if source.record:
        hosts.update(SITES[source.record.site])
    if source.hub:
        hosts.add("huggingface.co")
    return frozenset(host.removeprefix("www.") for host in hosts)


def dataset_repos(source: Source) -> frozenset[str]:
    """Dataset repositories on the Hub that a task's source names."""
    repos = {source.hub.repo} if source.hub else set()
    path = source.url.path or ""
    if source.url.host == "huggingface.co" and path.startswith("/datasets/"):
        repos.add("/".join(path.split("/")[2:4]))
    return frozenset(repos)


def _as_served(path: str) -> str:
    """A path without its query, as a server may read it: escapes resolved, no empty or dotted parts."""
    path = path.partition("?")[0]
    for _ in range(DEEPEST_ESCAPE):
        path = unquote(path)
    return posixpath.normpath(f"/{path}".lower())


def _among(host: str, domains: Iterable[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _listed(host: str, patterns: Iterable[str]) -> bool:
    return any(
        host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern for pattern in patterns
    )
