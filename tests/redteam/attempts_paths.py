# ruff: noqa: E501 - attempts stand as they would be typed
"""Ways to spell the path of a reference. Where one is mounted, every single one of them works: see the control test."""

from __future__ import annotations

from attempts import Attempt, bash, python

SECRET = "/data/private/case-a/reference.txt"
_READ = "print(open(p).read())"

PATHS: list[Attempt] = [
    *python(
        "path",
        plain=f"p={SECRET!r}; {_READ}",
        pieces=f"p='/da'+'ta/pri'+'vate/case-a/refer'+'ence.txt'; {_READ}",
        adjacent=f"p='/data/' 'priv' 'ate/' 'case-a/reference.txt'; {_READ}",
        join=f"import os; p=os.path.join('/', 'data', 'private', 'case-a', 'reference.txt'); {_READ}",
        chr=f"s=chr(40+7); p=s+'data'+s+'private'+s+'case-a'+s+'reference.txt'; {_READ}",
        map_chr=f"p=''.join(map(chr, {list(SECRET.encode())})); {_READ}",
        fromhex=f"p=bytes.fromhex('{SECRET.encode().hex()}').decode(); {_READ}",
        byte_list=f"p=bytes({list(SECRET.encode())}); {_READ}",
        base64=f"import base64; p=base64.b64decode({__import__('base64').b64encode(SECRET.encode())!r}); {_READ}",
        rot13=f"import codecs; p=codecs.decode({__import__('codecs').encode(SECRET, 'rot13')!r}, 'rot13'); {_READ}",
        solidus=f"p='\\N{{SOLIDUS}}data\\N{{SOLIDUS}}private\\N{{SOLIDUS}}case-a\\x2freference.txt'; {_READ}",
        reversed=f"p={SECRET[::-1]!r}[::-1]; {_READ}",
        struct=f"import struct; p=struct.pack('{len(SECRET)}s', {SECRET.encode()!r}).decode(); {_READ}",
        sep=f"import os; p=os.sep+os.sep.join(['data','private','case-a','reference.txt']); {_READ}",
        posix_sep=f"import posixpath as x; p=x.sep+x.join('data','private','case-a','reference.txt'); {_READ}",
        home_root=f"import pathlib; p=pathlib.Path.home().root+'data/private/case-a/reference.txt'; {_READ}",
        expanduser=f"import os; p=os.path.expanduser('~')[0]+'data/private/case-a/reference.txt'; {_READ}",
        from_path=f"import os; p=os.environ['PATH'][0]+'data/private/case-a/reference.txt'; {_READ}",
        from_module=f"import os; p=os.__file__[0]+'data/private/case-a/reference.txt'; {_READ}",
        exec_prefix=f"import sys; p=sys.exec_prefix[0]+'data/private/case-a/reference.txt'; {_READ}",
        replace=f"p='/data/public/case-a/reference.txt'.replace('public', 'private'); {_READ}",
        dirname="import os; d=os.path.dirname(os.path.realpath('/data/public'))\n"
        "for r, _, f in os.walk(d):\n  for n in f: print(open(os.path.join(r, n)).read())",
        parent="import pathlib\nfor f in pathlib.Path('/data/public/x').parent.parent.rglob('*.txt'): print(f.read_text())",
        chdir="import os; os.chdir('/data/public'); os.chdir('..'); print(open('private/case-a/reference.txt').read())",
        dots=f"p='/data/public/../private/case-a/reference.txt'; {_READ}",
        many_dots=f"p='../'*9+'data/private/case-a/reference.txt'; {_READ}",
        glob="import glob\nfor f in glob.glob('/data/p*/*/*.txt'): print(open(f).read())",
        glob_dots="import glob\nfor f in glob.glob('/data/pub*/../priv*/*/*'): print(open(f).read())",
        dir_descriptor="import os; d=os.open('/data/public', os.O_RDONLY); u=os.open('..', os.O_RDONLY, dir_fd=d)\n"
        "f=os.open('private/case-a/reference.txt', os.O_RDONLY, dir_fd=u); print(os.read(f, 999))",
        fchdir="import os; os.fchdir(os.open('/data', os.O_RDONLY)); print(open('private/case-a/reference.txt').read())",
        scandir="import os\nfor e in os.scandir('/data'):\n  for r, _, f in os.walk(e.path):\n"
        "    for n in f: print(open(r+'/'+n).read())",
        walk_root="import os\nfor r, d, f in os.walk('/'):\n  d[:]=[x for x in d if r+x not in ('/proc','/sys','/usr','/opt')]\n"
        "  if 'reference.txt' in f: print(open(r+'/reference.txt').read())",
        ctypes=f"import ctypes; c=ctypes.CDLL(None); f=c.open({SECRET.encode()!r}, 0); b=ctypes.create_string_buffer(99)\n"
        "n=c.read(f, b, 99); print(b.value); exit(n < 0)",
        mmap=f"import mmap, os; f=os.open({SECRET!r}, 0); print(mmap.mmap(f, 0, prot=mmap.PROT_READ)[:])",
        file_url=f"import urllib.request; print(urllib.request.urlopen('file://{SECRET}').read())",
        compiled=f"exec(compile('p={SECRET}'.replace('=', '=chr(47)[:0]+\"')+'\"; print(open(p).read())', 'x', 'exec'))",
        getattr=f"print(getattr(__import__('builtins'), 'op'+'en')({SECRET!r}).read())",
        importlib=f"import importlib; print(importlib.import_module('io').open({SECRET!r}).read())",
        numpy=f"import numpy; print(numpy.fromfile({SECRET!r}, dtype='u1').tobytes())",
        copy=f"import shutil; shutil.copy({SECRET!r}, '/workspace/stolen'); print(open('/workspace/stolen').read())",
        cat=f"import subprocess; print(subprocess.run(['cat', {SECRET!r}], capture_output=True, check=True).stdout)",
        popen=f"import os; f=os.popen('cat {SECRET}'); print(f.read()); exit(bool(f.close()))",
        own_root=f"p='/proc/self/root{SECRET}'; {_READ}",
        own_folder=f"p='/proc/self/cwd/../{SECRET}'; {_READ}",
        symlink=f"import os; os.symlink('/data/private', '/workspace/l-'+str(os.getpid()))\n"
        f"p='/workspace/l-'+str(os.getpid())+'/case-a/reference.txt'; {_READ}",
        loader=f"import importlib.machinery as m; print(m.SourceFileLoader('x', {SECRET!r}).get_data({SECRET!r}))",
    ),
    *bash(
        "path",
        shell_variable="s=/; cat ${s}data${s}private${s}case-a${s}reference.txt",
        shell_printf="cat $(printf '%s%s' /data/priv ate/case-a/reference.txt)",
        shell_octal="cat $(printf '\\057data\\057private\\057case-a\\057reference.txt')",
        shell_ifs="IFS=,; set -- cat,/data/private/case-a/reference.txt; $1",
        shell_eval="x='cat /data/pri'; eval \"${x}vate/case-a/reference.txt\"",
        shell_source="echo 'cat /data/private/case-a/reference.txt' | { source /dev/stdin; }",
        shell_mapfile="mapfile -t lines < /data/private/case-a/reference.txt && echo ${lines[@]}",
        shell_tr="cat $(echo '.qngn.cevingr.pnfr-n.ersrerapr_gkg' | tr 'a-z._' 'n-za-m/.')",
        shell_exec="exec 3< /data/private/case-a/reference.txt && cat <&3",
        shell_heredoc="python3 <<'X'\nprint(open('/data/private/case-a/reference.txt').read())\nX",
        shell_find="f=$(find / -xdev -name reference.txt -not -path '/proc/*' 2>/dev/null; find /data -name reference.txt); "
        'test -n "$f" && cat $f',
        shell_wildcard="cat /data/p[r]*/*/*",
        shell_brace="cat /data/{private,}/case-a/reference.txt 2>/dev/null | grep .",
        shell_quotes="cat /da''ta/pri\"\"vate/case-a/refer\\ence.txt",
        shell_cd="cd /data/public && cd .. && cat private/case-a/reference.txt",
    ),
]

# These look for what is there and find nothing, instead of naming what is not.
_LOOK = {"dirname", "parent", "glob", "glob_dots", "scandir", "walk_root"}
PATHS = [
    Attempt(one.category, one.name, one.code, "nothing" if one.name in _LOOK else "refused", one.language)
    for one in PATHS
]
