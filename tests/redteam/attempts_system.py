# ruff: noqa: E501 - attempts stand as they would be typed
"""Attempts on everything but the references' path. ``PORT``, ``TOKEN`` and the like are filled in by the test."""

from __future__ import annotations

from attempts import Attempt, bash, python


def harmless(attempts: list[Attempt]) -> list[Attempt]:
    """The same, expected to run to their end and to find nothing."""
    return [Attempt(a.category, a.name, a.code, "nothing", a.language) for a in attempts]


def _connect(address: str, family: str = "AF_INET") -> str:
    return (
        f"import socket; s=socket.socket(socket.{family}); s.settimeout(2); s.connect({address})\n"
        "s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(999))"
    )


LINKS = [
    *python(
        "link",
        hard_link_public="import os; os.link('/data/public/case-a/image.txt', '/workspace/hard')",
        hard_link_passwd="import os; os.link('/etc/passwd', '/workspace/hard2')",
        hard_link_descriptor="import os; f=os.open('/data/public/case-a/image.txt', os.O_RDONLY)\n"
        "os.link(f'/proc/self/fd/{f}', '/workspace/hard3', follow_symlinks=True)",
        chroot="import os; os.chroot('/workspace')",
        rename_public="import os; os.rename('/data/public/case-a', '/workspace/case-a')",
        exchange="import ctypes; c=ctypes.CDLL(None, use_errno=True)\n"
        "exit(c.renameat2(-100, b'/workspace', -100, b'/data/public', 2) != 0)",
    ),
    *bash(
        "link",
        bind_mount="mount --bind /data/public /workspace",
        tmpfs_mount="mount -t tmpfs none /mnt",
        proc_mount="mkdir -p p && mount -t proc proc p && cat p/1/environ",
        overlay="mkdir -p u w m && mount -t overlay overlay -o lowerdir=/data,upperdir=u,workdir=w m",
        user_namespace_mount="unshare -Urm sh -c 'mount --bind / /mnt && cat /mnt/data/private/case-a/reference.txt'",
    ),
]

PROC = [
    *python(
        "proc",
        first_environ="print(open('/proc/1/environ').read())",
        first_root="import os; print(os.listdir('/proc/1/root'))",
        first_folder="import os; print(os.listdir('/proc/1/cwd'))",
        first_descriptors="import os; print(os.listdir('/proc/1/fd'))",
        first_memory="print(open('/proc/1/mem', 'rb').read(1))",
        first_map="print(open('/proc/1/map_files').read())",
        ptrace="import ctypes; exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)",
        process_vm="import ctypes; exit(ctypes.CDLL(None).process_vm_readv(1, 0, 0, 0, 0, 0) != 0 or 1)",
        core="print(open('/proc/kcore', 'rb').read(4))",
        keys_of_kernel="open('/proc/sys/kernel/core_pattern', 'w').write('|/workspace/x')",
        sysrq="open('/proc/sysrq-trigger', 'w').write('h')",
        oom="open('/proc/1/oom_score_adj', 'w').write('1000')",
        kernel_log="print(open('/dev/kmsg').read(10))",
        memory_device="open('/dev/mem', 'rb').read(1)",
        release_agent="import glob\nfor f in glob.glob('/sys/fs/cgroup/**/release_agent', recursive=True) or ['/nowhere/x']:\n"
        "  open(f, 'w').write('/workspace/x')",
        cgroup_limits="import glob\nfor f in glob.glob('/sys/fs/cgroup/**/memory.m*', recursive=True) or ['/nowhere/x']:\n"
        "  open(f, 'w').write('99999999999')",
        hotplug="open('/sys/kernel/uevent_helper', 'w').write('/workspace/x')",
    ),
    *harmless(
        python(
            "proc",
            all_environs="import glob\nfor f in glob.glob('/proc/[0-9]*/environ'):\n"
            "  try: print(open(f).read())\n  except OSError: pass",
            all_commands="import glob\nfor f in glob.glob('/proc/[0-9]*/cmdline'):\n"
            "  try: print(open(f).read())\n  except OSError: pass",
            mount_table="print([l for l in open('/proc/self/mountinfo') if 'private' in l or 'results' in l])",
            mount_table_secrets="t=open('/proc/self/mountinfo').read(); assert 'docker.sock' not in t and '/data/private' not in t",
            other_processes="import glob, os\n"
            "assert len([p for p in glob.glob('/proc/[0-9]*')]) < 20, os.listdir('/proc')",
        )
    ),
]

KEYS = [
    *harmless(
        python(
            "key",
            environ="import os; print(dict(os.environ)); assert not [k for k in os.environ if 'KEY' in k or 'TOKEN' in k]",
            home_files="import pathlib\nfor n in ('.netrc', '.pypirc', '.git-credentials', '.aws/credentials', '.ssh/id_rsa',\n"
            "  '.ssh/id_ed25519', '.docker/config.json', '.cache/huggingface/token', '.config/gh/hosts.yml', '.bash_history'):\n"
            "  for home in (pathlib.Path.home(), pathlib.Path('/root')):\n"
            "    try: print((home / n).read_text())\n    except OSError: continue",
            keyring="import ctypes; c=ctypes.CDLL(None); b=ctypes.create_string_buffer(999)\n"
            "k=c.syscall(250, 10, b'user', b'automedbench', 0, 0); n=c.syscall(250, 11, k, b, 999); print(b.value)",
            home_of_others="import os\nfor h in ('/root', '/home'):\n  try: print([os.listdir(h+'/'+n) for n in os.listdir(h)])\n"
            "  except OSError: pass",
        )
    ),
    *python(
        "key",
        shadow="print(open('/etc/shadow').read())",
        machine_key="print(open('/etc/ssh/ssh_host_ed25519_key').read())",
        host_canary="print(open('HOSTFILE').read())",
        host_canary_by_root="print(open('/proc/self/root/HOSTFILE').read())",
        runner_folder="import os; print(os.listdir('REPOSITORY'))",
        other_cell="print(open('OTHERCELL/workspace/secret.txt').read())",
        own_run_folder="print(open('OWNCELL/cell.json').read())",
        own_run_trace="print(open('/workspace/../trace.jsonl').read())",
    ),
]

HARNESS = [
    *python(
        "harness",
        import_evaluator="import evaluator",
        import_runner="import runner",
        import_tasks="import tasks",
        source_folder="import os; print(os.listdir('/opt/automedbench'))",
        engine_storage="import os; print(os.listdir('/var/lib/docker'))",
        image_layers="import os; print(os.listdir('/var/lib/docker/overlay2'))",
        metadata_of_package="import importlib.metadata as m; print(m.files('automedbench'))",
    ),
    *harmless(
        python(
            "harness",
            find_sources="import os\nfor r, d, f in os.walk('/', onerror=None):\n"
            "  if r == '/': d[:] = [x for x in d if x not in ('proc', 'sys')]\n"
            "  assert not {'judgement.py', 'agents.yaml', 'bubblewrap_layout.py', 'task.yaml'} & set(f), r",
            compiled_sources="import glob; assert not glob.glob('/opt/**/seal*.pyc', recursive=True)",
        )
    ),
]

SOCKETS = [
    *python(
        "socket",
        docker=_connect("'/var/run/docker.sock'", "AF_UNIX"),
        docker_run=_connect("'/run/docker.sock'", "AF_UNIX"),
        containerd=_connect("'/run/containerd/containerd.sock'", "AF_UNIX"),
        dbus=_connect("'/run/dbus/system_bus_socket'", "AF_UNIX"),
        abstract=_connect("'\\0ABSTRACT'", "AF_UNIX"),
    ),
    *harmless(
        bash(
            "socket",
            any_socket="test -z \"$(find / -xdev -type s -not -path '/proc/*' -not -path '/workspace/*' 2>/dev/null)\"",
        )
    ),
]

NETWORK = [
    *python(
        "network",
        loopback=_connect("('127.0.0.1', PORT)"),
        any_address=_connect("('0.0.0.0', PORT)"),
        loopback_six=_connect("('::1', PORT)", "AF_INET6"),
        mapped=_connect("('::ffff:127.0.0.1', PORT)", "AF_INET6"),
        host_address=_connect("('HOSTIP', PORT)"),
        docker_bridge=_connect("('172.17.0.1', PORT)"),
        decimal_address=_connect("('2130706433', PORT)"),
        metadata=_connect("('169.254.169.254', 80)"),
        metadata_six=_connect("('fd00:ec2::254', 80)", "AF_INET6"),
        outside=_connect("('192.0.2.1', 443)"),
        dns="import socket; print(socket.getaddrinfo('example.org', 80))",
        dns_udp="import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('8.8.8.8', 53))",
        raw="import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        packet="import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        urllib="import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=2).read())",
        vsock="import socket; s=socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.settimeout(2); s.connect((2, 22))",
    ),
    *harmless(
        python("network", interfaces="import socket; assert [n for _, n in socket.if_nameindex()] == ['lo']"),
    ),
]  # fmt: skip

PRIVILEGES = [
    *python(
        "privilege",
        setuid="import os; os.setuid(0)",
        setgid="import os; os.setgid(0)",
        groups="import os; os.setgroups([0, 999])",
        kill_first="import os; os.kill(1, 9); import time; time.sleep(0.2); os.kill(1, 0); raise SystemExit('alive')",
        device="import os; os.mknod('/workspace/disk', 0o60600, os.makedev(8, 0))",
        reboot="import ctypes; exit(ctypes.CDLL(None).reboot(0x1234567) != 0)",
        hostname="import socket; socket.sethostname('owned')",
        clock="import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
        priority="import os; os.nice(-20)",
        raise_files="import resource as r; r.prlimit(1, r.RLIMIT_NOFILE, (10, 10))",
        module="import ctypes; exit(ctypes.CDLL(None).syscall(175, 0, 0, b'') != 0)",
        bpf="import ctypes; exit(ctypes.CDLL(None).syscall(321, 5, 0, 0) < 0)",
        handle="import ctypes; exit(ctypes.CDLL(None).syscall(304, -100, b'x', 0) < 0)",
        keys_of_terminal="import fcntl; fcntl.ioctl(0, 0x5412, b'x')",
        chown="import os; open('/workspace/f', 'w'); os.chown('/workspace/f', 0, 0)",
        ambient="import ctypes; exit(ctypes.CDLL(None).prctl(47, 2, 21, 0, 0) != 0)",
        preload="open('/etc/ld.so.preload', 'w').write('/workspace/x.so')",
    ),
    *bash(
        "privilege",
        su="su root -c true </dev/null",
        setuid_program="cp /bin/sh s && chmod 4755 s && ./s -p -c 'test $(id -u) = 0'",
        enter="nsenter -t 1 -m true",
        pivot="unshare -m true",
    ),
    Attempt("privilege", "user_namespace", "unshare -Ur true", "refused", "bash", where_bubblewrap="nothing"),
]

WRITES = [
    *python(
        "write",
        public_new="open('/data/public/case-a/planted', 'w')",
        public_append="open('/data/public/case-a/image.txt', 'a').write('x')",
        public_truncate="import os; os.truncate('/data/public/case-a/image.txt', 0)",
        public_unlink="import os; os.unlink('/data/public/case-a/image.txt')",
        public_mode="import os; os.chmod('/data/public/case-a/image.txt', 0o777)",
        public_times="import os; os.utime('/data/public/case-a/image.txt', (0, 0))",
        public_attribute="import os; os.setxattr('/data/public/case-a/image.txt', 'user.x', b'1')",
        public_by_descriptor="import os; f=os.open('/data/public/case-a/image.txt', os.O_RDONLY); open(f'/proc/self/fd/{f}', 'r+')",
        sitecustomize="open('/opt/site/sitecustomize.py', 'w')",
        path_file="open('/opt/site/x.pth', 'w')",
        python_library="import os; open(os.path.dirname(os.__file__)+'/sitecustomize.py', 'w')",
        passwd="open('/etc/passwd', 'a')",
        hosts="open('/etc/hosts', 'a')",
        root="open('/planted', 'w')",
        beside_workspace="open('/workspace/../planted', 'w')",
        data="import os; os.mkdir('/data/private')",
    ),
]

SYSTEM: list[Attempt] = [*LINKS, *PROC, *KEYS, *HARNESS, *SOCKETS, *NETWORK, *PRIVILEGES, *WRITES]
