"""The images of the two sandboxes: built from the locks and the sources, named by what they were built from."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import evaluator
import tasks
from runner.images.packages import HERE, Target, cache_folder, digest, ensure_site, lock_file
from runner.sandbox.base import Role, SandboxUnavailable

if TYPE_CHECKING:
    from docker import APIClient

BASE = "python:3.12-slim"
HINT = "run `make images`"
Say = Callable[[str], None]


def ensure_images(roles: Iterable[Role], rebuild: bool = False, say: Say = print) -> dict[Role, str]:
    """The id of each role's image, built where there is none of the present sources or ``rebuild`` asks for it.

    Raises
    ------
    SandboxUnavailable
        No engine answers, or there is neither a registry nor a Debian mirror to take a base from.
    """
    from runner.sandbox.docker import DockerBackend

    api = DockerBackend().api
    return {role: _ensure_image(api, role, rebuild, say) for role in roles}


def existing_image(api: APIClient, role: Role) -> str:
    """The id of a role's image. One that lacks no more than changed sources is built at once, in a second or two.

    Raises
    ------
    SandboxUnavailable
        There is none.
    """
    chosen = os.environ.get(f"AUTOMEDBENCH_{role.upper()}_IMAGE")
    if chosen:
        return _require(_image_id(api, chosen), f"no image {chosen}")
    tag = image_tag(role)
    image = _image_id(api, tag)
    if image is None and _image_id(api, packages_tag(role)):
        image = _build_role(api, role, tag)
    return _require(image, f"no {role} image of the present sources: {HINT}")


def image_tag(role: Role) -> str:
    """Name of a role's image: another lock, Dockerfile or source file gives another name."""
    parts = [packages_tag(role).encode(), (HERE / f"{role}.Dockerfile").read_bytes()]
    if role == "evaluator":
        parts.append(source_digest().encode())
    return f"automedbench/{role}:{digest(parts)[:12]}"


def packages_tag(role: Role) -> str:
    parts = [lock_file(role).read_bytes(), (HERE / "packages.Dockerfile").read_bytes()]
    return f"automedbench/{role}-packages:{digest(parts)[:12]}"


def source_digest() -> str:
    """Digest of what the evaluator sandbox runs: all files of ``tasks`` and ``evaluator``."""
    return digest(part for name, file in source_files() for part in (name.encode(), file.read_bytes()))


def source_files() -> Iterator[tuple[str, Path]]:
    """Path inside and file of everything the evaluator sandbox sees of this project, in a fixed order."""
    for root in source_folders():
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(Path(root.name) / file.relative_to(root)), file


def source_folders() -> tuple[Path, Path]:
    return Path(tasks.__path__[0]), Path(evaluator.__path__[0])


def _ensure_image(api: APIClient, role: Role, rebuild: bool, say: Say) -> str:
    tag = image_tag(role)
    image = None if rebuild else _image_id(api, tag)
    if image is None:
        if rebuild or not _image_id(api, packages_tag(role)):
            _build_packages(api, role, say)
        say(f"{role}: building {tag}")
        image = _build_role(api, role, tag)
        _forget_superseded(api, role, tag)
    say(f"{role}: {tag} is ready")
    return image


def _forget_superseded(api: APIClient, role: Role, present: str) -> None:
    """Remove images of earlier sources, but for those a container still uses."""
    from docker.errors import APIError

    for image in api.images(name=f"automedbench/{role}"):
        for tag in set(image["RepoTags"] or ()) - {present}:
            with contextlib.suppress(APIError):
                api.remove_image(tag)


def _build_packages(api: APIClient, role: Role, say: Say) -> None:
    base = _base_image(api, say)
    target = _target_of(api, base)
    say(f"{role}: installing the locked packages for Python {target.python}")
    site = ensure_site(role, target)
    say(f"{role}: building {packages_tag(role)} on {base}")
    _build(api, "packages", packages_tag(role), {"site": site}, base)


def _build_role(api: APIClient, role: Role, tag: str) -> str:
    sources = {f"source/{name}": file for name, file in source_files()} if role == "evaluator" else {}
    _build(api, role, tag, sources, packages_tag(role))
    return _require(_image_id(api, tag), f"the {role} image was not built")


def _base_image(api: APIClient, say: Say) -> str:
    """A Python image: the one that was asked for, else the official one, else one made of Debian packages."""
    chosen = os.environ.get("AUTOMEDBENCH_BASE_IMAGE")
    if chosen:
        if not (_image_id(api, chosen) or _pull(api, chosen, say)):
            raise SandboxUnavailable(f"no base image {chosen}")
        return chosen
    if _image_id(api, BASE) or _pull(api, BASE, say):
        say(f"{BASE} is a tag; to pin it, set AUTOMEDBENCH_BASE_IMAGE={BASE}@sha256:...")
        return BASE
    return _local_base(api, say)


def _pull(api: APIClient, name: str, say: Say) -> bool:
    from docker.errors import APIError

    say(f"pulling {name}")
    try:
        for line in api.pull(name, stream=True, decode=True):
            if "error" in line:
                say(f"not pulled: {line['error']}")
                return False
    except APIError as error:
        say(f"not pulled: {error.explanation or error}")
        return False
    return True


def _local_base(api: APIClient, say: Say) -> str:
    script = HERE / "local_base.sh"
    key = digest([script.read_bytes()])[:12]
    name = f"automedbench/base:{key}"
    if _image_id(api, name):
        return name
    tar = cache_folder() / "base" / f"{key}.tar"
    if not tar.exists():
        say("building a base from Debian packages (about half a minute)")
        _make_rootfs(script, tar)
    with tar.open("rb") as file:
        path = "ENV PATH=/usr/local/bin:/usr/bin:/bin"
        api.import_image_from_data(
            file, repository="automedbench/base", tag=key, changes=[path, "ENV LANG=C.UTF-8"]
        )
    return name


def _make_rootfs(script: Path, tar: Path) -> None:
    tar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tar.parent) as folder:
        fresh = Path(folder) / "base.tar"
        try:
            done = subprocess.run([str(script), str(fresh)], capture_output=True, text=True)
        except OSError as error:
            raise SandboxUnavailable(f"no base image: {error}") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SandboxUnavailable(
                f"no base image: {BASE} could not be pulled and building one from Debian packages failed ({last}); "
                "let the engine reach a registry, or install mmdebstrap"
            )
        fresh.rename(tar)


def _target_of(api: APIClient, base: str) -> Target:
    """Ask the base which Python it has."""
    question = "import sys, os; print('%d.%d' % sys.version_info[:2], os.uname().machine)"
    container = api.create_container(base, ["python3", "-c", question], network_disabled=True)["Id"]
    try:
        api.start(container)
        api.wait(container)
        answer = api.logs(container).decode().split()
    finally:
        api.remove_container(container, force=True)
    if len(answer) != 2:
        raise SandboxUnavailable(f"the base image {base} has no Python: {' '.join(answer)[:200]}")
    return Target(python=answer[0], machine=answer[1])


def _build(api: APIClient, dockerfile: str, tag: str, files: Mapping[str, Path], base: str) -> None:
    with _context(HERE / f"{dockerfile}.Dockerfile", files) as context:
        last = ""
        stream = api.build(
            fileobj=context,
            custom_context=True,
            tag=tag,
            buildargs={"BASE": base},
            network_mode="none",  # all that goes in is in the context
            rm=True,
            forcerm=True,
            decode=True,
        )
        for line in stream:
            last = line.get("stream", "").strip() or last
            if "error" in line:
                raise SandboxUnavailable(f"building {tag} failed after {last!r}: {line['error'].strip()}")


@contextlib.contextmanager
def _context(dockerfile: Path, files: Mapping[str, Path]) -> Iterator[IO[bytes]]:
    """The build context as a tar; owners and times are fixed so that equal content is the same layer."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(dockerfile, "Dockerfile", filter=_plain)
            for name, source in files.items():
                tar.add(source, name, filter=_plain)
        file.seek(0)
        yield file


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in Path(entry.name).parts:
        return None
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _image_id(api: APIClient, name: str) -> str | None:
    from docker.errors import ImageNotFound

    try:
        inspected: dict[str, Any] = api.inspect_image(name)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    return str(inspected["Id"])


def _require(image: str | None, otherwise: str) -> str:
    if image is None:
        raise SandboxUnavailable(otherwise)
    return image
