"""Sandboxes as containers of a Docker engine: one long-lived container per phase, commands as execs in it.

The container's own process is root without capabilities and does nothing but wait: for its lease to pass, or for its
standard input to close, which happens by itself when the runner dies. Commands run as an unprivileged uid that cannot
signal it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.sandbox import cgroups, endcall, files
from runner.sandbox.base import (
    Availability,
    ExecResult,
    Protection,
    Role,
    SandboxDead,
    SandboxSpec,
    SandboxUnavailable,
)
from runner.sandbox.disk import DiskMeter
from runner.sandbox.docker_exec import ExecStream, close_stream, engine_errors
from runner.sandbox.docker_runtime import kernel_protection, runtime
from runner.sandbox.inside import CALL_VARIABLE, CallMarks, checked, environment, ids, tmp_mb, workdir
from runner.sandbox.owner import Owner
from runner.sandbox.supervise import supervise

if TYPE_CHECKING:
    from docker import APIClient

OWNER_LABEL = "automedbench.owner"
RUN_LABEL = "automedbench.run"
ROLE_LABEL = "automedbench.role"

ROLES: tuple[Role, ...] = ("agent", "evaluator")

ENGINE_TIMEOUT = 60
"""Seconds the engine may take for one answer; a loaded one is slow, not gone."""

KILL_PATIENCE = 15.0
REMOVE_PATIENCE = 30.0
MIB = 1024 * 1024


class DockerBackend:
    """The back end for machines with a Docker engine."""

    name = "docker"

    @cached_property
    def api(self) -> APIClient:
        """The connection to the engine, made at first use: loading the SDK alone takes 0.4 s."""
        from docker import APIClient
        from docker.errors import DockerException
        from docker.utils import kwargs_from_env

        try:
            return APIClient(version="auto", timeout=ENGINE_TIMEOUT, **kwargs_from_env())
        except DockerException as error:
            raise SandboxUnavailable(f"no Docker engine answers: {error}; install and start one") from None

    def available(self) -> Availability:
        if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
            return Availability(
                False, "no Docker engine: /var/run/docker.sock does not exist; install docker.io"
            )
        from runner.images.build import existing_image

        try:
            with engine_errors("Docker is not usable"):
                version = self.api.version()["Version"]
                if (wanted := runtime()) and wanted not in (known := self.api.info()["Runtimes"]):
                    return Availability(
                        False, f"no runtime {wanted}; the engine has {', '.join(sorted(known))}"
                    )
                for role in ROLES:
                    existing_image(self.api, role)
        except (SandboxUnavailable, SandboxDead) as error:
            return Availability(False, str(error))
        return Availability(True, f"Docker engine {version}")

    def protections(self) -> tuple[Protection, ...]:
        return (
            Protection(
                "network",
                "full",
                "none at all; when open, the engine's bridge, and with it what the host offers on all addresses",
            ),
            Protection("uid", "full", f"commands run as uid {ids()[0]}"),
            Protection("capabilities", "full", "all dropped"),
            Protection("no_new_privs", "full"),
            Protection("seccomp", "full", "the engine's default filter"),
            kernel_protection(),
            Protection("memory", "full", "control group, no swap"),
            Protection("pids", "full", "control group"),
            Protection("cpu", "full", "control group"),
            Protection(
                "disk", "partial", "size and number of files, looked at from the host about once a second"
            ),
            Protection("fsize", "full", "no single file larger than the disk cap"),
            Protection("read_only_root", "full"),
            Protection("private_data", "full", "only the mounts of the phase exist inside"),
            Protection("dead_mans_switch", "full", "ends with the runner, or with its lease"),
            Protection("gpu", "full", "by device id, with the NVIDIA container toolkit"),
        )

    def create(self, spec: SandboxSpec) -> DockerSandbox:
        from runner.images.build import existing_image

        with engine_errors("no sandbox was made"):
            return DockerSandbox(self.api, spec, existing_image(self.api, spec.role))

    def environment_digest(self, role: Role) -> str:
        from runner.images.build import existing_image

        with engine_errors(f"no {role} image was found"):
            return existing_image(self.api, role)

    def reap(self) -> list[str]:
        with engine_errors("leftovers were not removed"):
            return [
                container["Names"][0].lstrip("/")
                for container in self.api.containers(all=True, filters={"label": OWNER_LABEL})
                if _is_orphan(container) and _remove(self.api, container["Id"])
            ]


class DockerSandbox:
    """One container and the commands in it; see ``runner.sandbox.base.Sandbox``."""

    def __init__(self, api: APIClient, spec: SandboxSpec, image: str) -> None:
        self.spec = spec
        self._api = api
        self._image = image
        self._container: str | None = None
        self._stdin: Any = None
        self._group: cgroups.Cgroup | None = None
        self._marks = CallMarks()
        self._user = "{}:{}".format(*ids())
        self._began = 0.0
        self._disk = DiskMeter((mount.source for mount in spec.mounts if mount.writable), spec.disk_mb)

    def start(self) -> None:
        files.prepare(self.spec)
        self._began = time.monotonic()
        try:
            with engine_errors("the container did not start"):
                self._container = self._create()
                self._stdin = self._api.attach_socket(self._container, params={"stdin": 1, "stream": 1})
                self._api.start(self._container)
                self._group = cgroups.of_container(self._container)
        except SandboxDead as error:
            self.stop()
            raise SandboxUnavailable(str(error)) from None
        except BaseException:
            self.stop()
            raise

    def exec(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        self.make_room()
        command = DockerCommand(self, checked(argv), stdin, env or {}, cwd or workdir(self.spec))
        return supervise(command, deadline=deadline, disk=self._disk, on_output=on_output)

    def put(self, files_: Mapping[str, bytes]) -> None:
        files.put(self.spec, files_)

    def get(self, path: str, limit: int = 16 * MIB) -> bytes:
        return files.get(self.spec, path, limit)

    def alive(self) -> bool:
        if self._container is None:
            return False
        try:
            with engine_errors(""):
                return bool(self._api.inspect_container(self._container)["State"]["Running"])
        except SandboxDead:
            return False

    def stop(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            with engine_errors("the container was not removed"):
                _remove(self._api, container)
        if self._stdin is not None:
            close_stream(self._stdin)
            self._stdin = None

    def __enter__(self) -> DockerSandbox:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def run(self, argv: Sequence[str], mark: str, env: Mapping[str, str], stdin: bytes | None) -> ExecStream:
        """Start a command as the unprivileged uid."""
        if self._container is None:
            raise SandboxDead("the sandbox was stopped, or never started")
        return ExecStream(
            self._api, self._container, argv, user=self._user, env={**env, CALL_VARIABLE: mark}, stdin=stdin
        )

    def next_mark(self) -> str:
        return self._marks.next()

    def end_call(self, mark: str) -> None:
        """Kill what carries the call's mark; the whole container when that cannot be done."""
        if not (self._end_call_from_outside(mark) or self._end_call_from_inside(mark)):
            self.stop()
            raise SandboxDead(
                "a command could not be ended at its deadline, so the sandbox was ended instead"
            )

    def _end_call_from_outside(self, mark: str) -> bool:
        """As root on the engine's own machine: quick, and no fork bomb can be in the way."""
        group = self._group
        if group is None or not group.can_be_killed_in():
            return False

        def unprivileged() -> list[int]:
            return [pid for pid in group.members() if endcall.uid_of(pid) not in (None, 0)]

        with group.no_forks():
            return endcall.end_call(CALL_VARIABLE, mark, unprivileged, KILL_PATIENCE)

    def _end_call_from_inside(self, mark: str) -> bool:
        argv = ["python3", "-I", "-S", "-c", Path(endcall.__file__).read_text(), CALL_VARIABLE, mark]
        give_up = time.monotonic() + KILL_PATIENCE
        while time.monotonic() < give_up:
            killer = self.run(argv, self._marks.first(), {}, None)
            while killer.read(0.1) is not None and time.monotonic() < give_up:
                pass
            if killer.finish(1.0) == 0:
                return True
        return False

    def oom_kills(self) -> int | None:
        """How often the kernel killed for memory; None where the host cannot tell."""
        return self._group.oom_kills() if self._group else None

    def make_room(self) -> None:
        """Kill what earlier calls left behind when it is so much that no command can start."""
        if self._group and self._group.is_crowded():
            self.end_call(self._marks.beyond())

    def raise_if_dead(self) -> None:
        time.sleep(0.05)  # the engine learns of the container's end a moment after its commands' ends
        if not self.alive():
            age = time.monotonic() - self._began
            lease = self.spec.lease_seconds
            why = (
                f"its lease of {lease} s passed"
                if age >= lease
                else "it was killed, or its first process was"
            )
            raise SandboxDead(f"the sandbox ended {age:.0f} s after its start: {why}")

    def _create(self) -> str:
        spec, api = self.spec, self._api
        created = api.create_container(
            self._image,
            command=["timeout", "-s", "KILL", str(spec.lease_seconds), "cat"],
            name=f"automedbench-{spec.role}-{secrets.token_hex(6)}",
            hostname="sandbox",
            user="0:0",
            working_dir="/",
            environment={**environment(spec), CALL_VARIABLE: self._marks.first()},
            stdin_open=True,
            labels={OWNER_LABEL: str(Owner.current()), RUN_LABEL: spec.run_id, ROLE_LABEL: spec.role},
            host_config=_host_config(api, spec),
        )
        return str(created["Id"])


class DockerCommand:
    """A command in a container; see ``runner.sandbox.supervise.Command``."""

    def __init__(
        self,
        sandbox: DockerSandbox,
        argv: Sequence[str],
        stdin: bytes | None,
        env: Mapping[str, str],
        cwd: str,
    ) -> None:
        self._sandbox = sandbox
        self._mark = sandbox.next_mark()
        self._oom_kills_before = sandbox.oom_kills()
        self._exit_code: int | None = None
        self._killed = False
        # env gives 127 for a missing program, which engines report in several ways
        self._stream = sandbox.run(["/usr/bin/env", "-C", cwd, *argv], self._mark, env, stdin)
        self.read = self._stream.read

    def kill(self) -> None:
        self._killed = True
        self._sandbox.end_call(self._mark)

    def finish(self) -> int:
        code = self._stream.finish()
        if code is None or (code == 137 and not self._killed):
            self._sandbox.raise_if_dead()
        if code is None:
            self._sandbox.stop()
            raise SandboxDead("the engine never reported the end of a command")
        self._exit_code = code
        return code

    def ran_out_of_memory(self) -> bool:
        kills = self._sandbox.oom_kills()
        if kills is None or self._oom_kills_before is None:
            return self._exit_code == 137 and not self._killed and self._counted_inside() > 0
        return kills > self._oom_kills_before

    def _counted_inside(self) -> int:
        script = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null"
        stream = self._sandbox.run(["sh", "-c", script], self._mark, {}, None)
        text = b""
        while (chunk := stream.read(1.0)) is not None:
            text += chunk
        stream.finish()
        return cgroups.parse_oom_kills(text.decode())


def _host_config(api: APIClient, spec: SandboxSpec) -> Any:
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    limits = {"nofile": 16_384, "core": 0, "fsize": spec.disk_mb * MIB}
    return api.create_host_config(
        auto_remove=True,
        init=True,
        runtime=runtime(),
        network_mode="none" if spec.network == "none" else "bridge",
        read_only=True,
        tmpfs={"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={tmp_mb(spec)}m"},
        shm_size=f"{tmp_mb(spec)}m",
        mounts=[
            Mount(m.target, str(m.source.resolve()), type="bind", read_only=not m.writable)
            for m in spec.mounts
        ],
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        mem_limit=spec.memory_mb * MIB,
        memswap_limit=spec.memory_mb * MIB,
        pids_limit=spec.pids,
        nano_cpus=int(spec.cpus * 1e9),
        ulimits=[Ulimit(name=name, soft=value, hard=value) for name, value in limits.items()],
        log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        device_requests=[DeviceRequest(device_ids=list(spec.gpus), capabilities=[["gpu"]])]
        if spec.gpus
        else None,
    )


def _is_orphan(container: Mapping[str, Any]) -> bool:
    """Whether the container's runner is dead; one of another boot is an orphan only when it no longer runs."""
    owner = Owner.parse(container["Labels"].get(OWNER_LABEL, ""))
    if owner is None:
        return False
    return owner.is_dead() or (not owner.from_this_boot() and container["State"] != "running")


def _remove(api: APIClient, container: str) -> bool:
    """Kill and remove a container, and return when it is gone; whether it was there."""
    from docker.errors import APIError, NotFound

    with contextlib.suppress(NotFound):
        try:
            api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code != 409:  # 409: its own end is removing it already
                raise
            give_up = time.monotonic() + REMOVE_PATIENCE
            while api.inspect_container(container) and time.monotonic() < give_up:
                time.sleep(0.02)
        return True
    return False
