"""Archives from anybody: whatever they hold is one refusal, and none is read into memory beyond a bound."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc

import pytest
import zstandard

from hf_datasets.archives import HEADER_BYTES, ArchiveError, read_tar, write_tar
from hf_datasets.outputs import unpack_outputs


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def read(file: object) -> dict[str, bytes]:
    return {
        name: content.read(1 << 22) for name, content, _ in read_tar(file, most_files=9, most_bytes=1 << 30)
    }


def test_an_archive_of_ours_is_read_back(tmp_path):
    members = [("a", b""), ("b/c.bin", b"x" * 3_000_000), ("d", b"y" * 10_241)]
    raw = io.BytesIO()
    write_tar(members, raw)
    raw.seek(0)
    assert read(raw) == dict(members)


@pytest.mark.parametrize("name", [".", "a/.", "a//b", "a\nb", "a\0b", "\u00e9" * 200, "x" * 256])
def test_names_that_no_file_of_ours_has_are_refused(name):
    info = tarfile.TarInfo("x")
    info.pax_headers = {"path": name}
    with pytest.raises(ArchiveError):
        read(io.BytesIO(packed((info, b"1"))))


def test_an_archive_that_ends_within_a_file_is_damaged(tmp_path):
    whole = packed((tarfile.TarInfo("case-1/x"), b"z" * 50_000))
    (tmp_path / "cut.tar.zst").write_bytes(zstandard.ZstdCompressor().compress(whole[:20_000]))
    with pytest.raises(ArchiveError, match="damaged"):
        unpack_outputs(tmp_path / "cut.tar.zst", tmp_path / "out")
    squeezed = gzip.compress(whole)
    spoilt = squeezed[:60] + b"\xff" * 20 + squeezed[80:]
    with pytest.raises(ArchiveError):
        read(gzip.GzipFile(fileobj=io.BytesIO(spoilt)))


def test_thousands_of_headers_in_a_row_are_refused():
    one = tarfile.TarInfo.create_pax_global_header({"comment": "x"})
    with pytest.raises(ArchiveError):
        read(io.BytesIO(one * 5_000))


class Zeros:
    """A header that promises a name of two gigabytes, and zeros without an end."""

    def __init__(self, before: bytes) -> None:
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2 << 30
        self._left = before + info.tobuf(tarfile.GNU_FORMAT)

    def read(self, size: int) -> bytes:
        content, self._left = self._left[:size], self._left[size:]
        return content + bytes(size - len(content))


@pytest.mark.parametrize("files", [0, 8])
def test_a_header_of_gigabytes_is_not_read_into_memory(files):
    before = packed(*((tarfile.TarInfo(f"f{number}"), b"1") for number in range(files)))[: files * 1024]
    tracemalloc.start()
    with pytest.raises(ArchiveError, match="between two files"):
        read(Zeros(before))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * HEADER_BYTES
