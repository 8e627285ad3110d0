"""Hostile files: makers by name, each with the reader it is meant for and the code it must be refused with."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from PIL import Image

Maker = Callable[[Path], None]
"""Writes the hostile file at the given path."""

HOSTILE: dict[tuple[str, str], tuple[str, Maker]] = {}
"""(reader, name) -> (code, maker)."""


def hostile(reader: str, code: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        HOSTILE[reader, maker.__name__] = (code, maker)
        return maker

    return register


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "hostile_file" in metafunc.fixturenames:
        metafunc.parametrize("hostile_file", list(HOSTILE), ids=lambda key: f"{key[0]}-{key[1]}")


@pytest.fixture
def hostile_files() -> dict[tuple[str, str], tuple[str, Maker]]:
    return HOSTILE


# --- what is no regular file, for every reader -----------------------------------------------------------------------


def not_there(path: Path) -> None:
    del path


def folder(path: Path) -> None:
    path.mkdir()


def link_to_secret(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def no_bytes(path: Path) -> None:
    path.touch()


def sparse_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


for _reader in ("nifti", "labels", "npy", "npz", "image", "json", "csv", "text", "dicom"):
    for _code, _maker in (
        ("missing", not_there),
        ("not_regular", folder),
        ("link", link_to_secret),
        ("link", link_to_nothing),
        ("link", link_to_endless_device),
        ("not_regular", fifo),
        ("empty", no_bytes),
        ("too_large", sparse_terabyte),
    ):
        hostile(_reader, _code)(_maker)


# --- NIfTI -----------------------------------------------------------------------------------------------------------

AFFINE = np.diag([1.0, 1.0, 2.0, 1.0])


def plain_nifti(data: np.ndarray | None = None, affine: np.ndarray | None = AFFINE) -> bytes:
    data = np.ones((6, 5, 4), np.uint8) if data is None else data
    return nib.Nifti1Image(data, affine, dtype=data.dtype).to_bytes()


def patched(offset: int, form: str, *values: float, data: np.ndarray | None = None) -> bytes:
    content = bytearray(plain_nifti(data))
    struct.pack_into("<" + form, content, offset, *values)
    return bytes(content)


def zeros_gz(times: int) -> bytes:
    """A gzip stream of ``times`` times 64 MB of zeros, in that many members."""
    return gzip.compress(bytes(64 << 20), 6) * times


@hostile("nifti", "truncated")
def truncated_gz(path: Path) -> None:
    packed = gzip.compress(plain_nifti(np.random.default_rng(0).integers(0, 255, (20, 20, 20), np.uint8)))
    path.write_bytes(packed[: len(packed) // 2])


@hostile("nifti", "corrupt")
def wrong_checksum(path: Path) -> None:
    packed = bytearray(gzip.compress(plain_nifti()))
    packed[-8] ^= 0xFF
    path.write_bytes(packed)


@hostile("nifti", "corrupt")
def garbled_gz(path: Path) -> None:
    packed = bytearray(
        gzip.compress(plain_nifti(np.random.default_rng(0).integers(0, 255, (20, 20, 20), np.uint8)))
    )
    packed[600:700] = bytes(100)
    packed[10:40] = b"\xff" * 30
    path.write_bytes(packed)


@hostile("nifti", "trailing_data")
def compression_bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(plain_nifti()) + zeros_gz(40))


@hostile("nifti", "bad_format")
def bomb_without_header(path: Path) -> None:
    path.write_bytes(zeros_gz(40))


@hostile("nifti", "trailing_data")
def text_behind_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(plain_nifti()) + b"and more")


@hostile("nifti", "trailing_data")
def gigabyte_of_padding_behind_gz(path: Path) -> None:
    with path.open("wb") as file:
        file.write(gzip.compress(plain_nifti()))
        file.truncate(1 << 30)


@hostile("nifti", "too_large")
def million_members_of_nothing(path: Path) -> None:
    path.write_bytes(gzip.compress(b"") * 1_000_000)


@hostile("nifti", "truncated")
def second_member_cut_short(path: Path) -> None:
    content = plain_nifti()
    path.write_bytes(gzip.compress(content[:400]) + gzip.compress(content[400:])[:-4])


@hostile("nifti", "truncated")
def name_without_end_in_gz(path: Path) -> None:
    path.write_bytes(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (20 << 20))


@hostile("nifti", "bad_format")
def header_that_claims_another_size(path: Path) -> None:
    path.write_bytes(patched(0, "i", 540))


@hostile("nifti", "too_large")
def header_of_30000_cubed(path: Path) -> None:
    path.write_bytes(patched(40, "8h", 3, 30000, 30000, 30000, 1, 1, 1, 1))


@hostile("nifti", "too_large")
def seven_dimensions_overflow(path: Path) -> None:
    path.write_bytes(patched(40, "8h", 7, *[32767] * 7))


@hostile("nifti", "truncated")
def claims_gigabytes_within_the_cap(path: Path) -> None:
    path.write_bytes(gzip.compress(patched(40, "8h", 3, 730, 730, 730, 1, 1, 1, 1)))


@hostile("nifti", "bad_format")
def negative_dimensions(path: Path) -> None:
    path.write_bytes(patched(40, "8h", 3, -6, -5, 4, 1, 1, 1, 1))


@hostile("nifti", "bad_format")
def zero_dimension(path: Path) -> None:
    path.write_bytes(patched(40, "8h", 3, 6, 0, 4, 1, 1, 1, 1))


@hostile("nifti", "bad_format")
def rank_of_nine(path: Path) -> None:
    path.write_bytes(patched(40, "8h", 9, *[1] * 7))


@hostile("nifti", "wrong_dimensions")
def one_hot_4d(path: Path) -> None:
    path.write_bytes(plain_nifti(np.zeros((6, 5, 4, 2), np.uint8)))


@hostile("nifti", "wrong_dimensions")
def two_dimensional(path: Path) -> None:
    path.write_bytes(plain_nifti(np.zeros((6, 5), np.uint8)))


@hostile("nifti", "unsupported_dtype")
def rgb_nifti(path: Path) -> None:
    data = np.zeros((6, 5, 4), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    path.write_bytes(plain_nifti(data))


@hostile("nifti", "unsupported_dtype")
def bits_for_bool(path: Path) -> None:
    path.write_bytes(patched(70, "h", 1))


@hostile("nifti", "unsupported_dtype")
def complex_nifti(path: Path) -> None:
    path.write_bytes(plain_nifti(np.zeros((6, 5, 4), np.complex64)))


@hostile("nifti", "bad_geometry")
def forms_that_disagree(path: Path) -> None:
    image = nib.Nifti1Image(np.ones((6, 5, 4), np.uint8), AFFINE)
    image.header.set_sform(AFFINE, 1)
    image.header.set_qform(np.eye(4), 1)
    path.write_bytes(image.to_bytes())


@hostile("nifti", "bad_geometry")
def without_affine(path: Path) -> None:
    path.write_bytes(plain_nifti(affine=None))


@hostile("nifti", "bad_geometry")
def affine_of_nan(path: Path) -> None:
    path.write_bytes(patched(280, "4f", np.nan, 0, 0, 0))


@hostile("nifti", "bad_geometry")
def flat_affine(path: Path) -> None:
    path.write_bytes(patched(280, "12f", 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0))


@hostile("nifti", "bad_geometry")
def quaternion_beyond_one(path: Path) -> None:
    content = bytearray(patched(254, "h", 0))
    struct.pack_into("<h", content, 252, 1)
    struct.pack_into("<3f", content, 256, 9.0, 9.0, 9.0)
    path.write_bytes(content)


@hostile("nifti", "non_finite")
def voxel_of_nan(path: Path) -> None:
    data = np.zeros((6, 5, 4), np.float32)
    data[1, 1, 1] = np.nan
    path.write_bytes(plain_nifti(data))


@hostile("nifti", "non_finite")
def slope_that_overflows(path: Path) -> None:
    path.write_bytes(patched(112, "2f", 3e38, 3e38))


@hostile("nifti", "bad_format")
def slope_of_infinity(path: Path) -> None:
    path.write_bytes(patched(112, "2f", np.inf, 0))


@hostile("nifti", "bad_format")
def body_far_away(path: Path) -> None:
    path.write_bytes(patched(108, "f", 1e12))


@hostile("nifti", "bad_format")
def body_before_the_header_ends(path: Path) -> None:
    path.write_bytes(patched(108, "f", 0))


@hostile("nifti", "bad_format")
def half_of_a_pair(path: Path) -> None:
    path.write_bytes(patched(344, "4s", b"ni1\0"))


@hostile("nifti", "truncated")
def header_cut_short(path: Path) -> None:
    path.write_bytes(plain_nifti()[:200])


@hostile("nifti", "truncated")
def body_cut_short(path: Path) -> None:
    path.write_bytes(plain_nifti()[:-1])


@hostile("nifti", "bad_format")
def text_named_nifti(path: Path) -> None:
    path.write_text("this is not an image " * 50)


@hostile("labels", "non_integer_labels")
def probabilities(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 0.7, np.float32)))


@hostile("labels", "unknown_label")
def label_four(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 4, np.uint8)))


@hostile("labels", "unknown_label")
def overflown_int8(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 200, np.uint8).astype(np.int8)))


@hostile("labels", "unknown_label")
def label_beyond_int64(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 1e300, np.float64)))


@hostile("labels", "unknown_label")
def largest_uint64(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 2**64 - 1, np.uint64)))


@hostile("labels", "unknown_label")
def every_number_once(path: Path) -> None:
    path.write_bytes(plain_nifti(np.arange(200 * 200 * 100, dtype=np.int32).reshape(200, 200, 100)))


@hostile("labels", "non_integer_labels")
def halves_by_the_scaling(path: Path) -> None:
    path.write_bytes(patched(112, "2f", 0.5, 0.0))


@hostile("labels", "unknown_label")
def unknown_by_the_scaling(path: Path) -> None:
    path.write_bytes(patched(112, "2f", 7.0, 0.0))


@hostile("labels", "unknown_label")
def zero_only_after_wrapping(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), 256, np.uint16)))


@hostile("labels", "unknown_label")
def label_of_minus_one(path: Path) -> None:
    path.write_bytes(plain_nifti(np.full((6, 5, 4), -1, np.int16)))


@hostile("labels", "non_finite")
def one_voxel_of_nan(path: Path) -> None:
    data = np.zeros((6, 5, 4), np.float64)
    data[3, 3, 3] = np.nan
    path.write_bytes(plain_nifti(data))


@hostile("labels", "non_finite")
def one_voxel_of_infinity(path: Path) -> None:
    data = np.zeros((6, 5, 4), ">f4")
    data[3, 3, 3] = np.inf
    path.write_bytes(gzip.compress(nib.Nifti1Image(data, AFFINE, dtype=data.dtype).to_bytes()))


@hostile("labels", "wrong_dimensions")
def one_hot_labels(path: Path) -> None:
    path.write_bytes(plain_nifti(np.ones((6, 5, 4, 3), np.uint8)))


@hostile("labels", "unsupported_dtype")
def labels_as_bits(path: Path) -> None:
    path.write_bytes(patched(70, "h", 1))


@hostile("labels", "too_large")
def labels_of_30000_cubed(path: Path) -> None:
    path.write_bytes(gzip.compress(patched(40, "8h", 3, 30000, 30000, 30000, 1, 1, 1, 1)))


@hostile("labels", "trailing_data")
def bomb_behind_labels(path: Path) -> None:
    path.write_bytes(gzip.compress(plain_nifti()) + zeros_gz(40))


@hostile("labels", "truncated")
def labels_cut_short(path: Path) -> None:
    packed = gzip.compress(plain_nifti(np.random.default_rng(0).integers(0, 3, (20, 20, 20), np.uint8)))
    path.write_bytes(packed[: len(packed) // 2])


# --- NumPy -----------------------------------------------------------------------------------------------------------


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


class Bang:
    """Leaves a mark in the environment of whoever unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("import os; os.environ['UNPICKLED'] = 'yes'",)


@hostile("npy", "pickled")
def pickled_array(path: Path) -> None:
    path.write_bytes(saved(np.array([Bang(), None], dtype=object)))


@hostile("npy", "bad_format")
def bare_pickle(path: Path) -> None:
    import pickle

    path.write_bytes(pickle.dumps(Bang()))


@hostile("npy", "unsupported_dtype")
def array_of_text(path: Path) -> None:
    path.write_bytes(saved(np.array(["a" * 1000])))


@hostile("npy", "unsupported_dtype")
def record_array(path: Path) -> None:
    path.write_bytes(saved(np.zeros(3, dtype=[("a", "f4"), ("b", "i2")])))


@hostile("npy", "unsupported_dtype")
def complex_array(path: Path) -> None:
    path.write_bytes(saved(np.zeros(3, np.complex128)))


@hostile("npy", "too_large")
def claims_a_petabyte(path: Path) -> None:
    path.write_bytes(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 100000), }"))


@hostile("npy", "bad_format")
def negative_shape(path: Path) -> None:
    path.write_bytes(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-5, 4), }"))


@hostile("npy", "bad_format")
def shape_of_text(path: Path) -> None:
    path.write_bytes(npy("{'descr': '<f8', 'fortran_order': False, 'shape': ('a', 4), }"))


@hostile("npy", "bad_format")
def header_that_calls(path: Path) -> None:
    path.write_bytes(
        npy("{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (4,), }")
    )


@hostile("npy", "bad_format")
def header_nested_deeply(path: Path) -> None:
    path.write_bytes(npy("(" * 4000 + ")" * 4000))


@hostile("npy", "bad_format")
def header_of_four_gigabytes(path: Path) -> None:
    path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFFF) + b"{" * 100_000)


@hostile("npy", "bad_format")
def version_nine(path: Path) -> None:
    path.write_bytes(b"\x93NUMPY\x09\x00" + bytes(200))


@hostile("npy", "truncated")
def body_missing(path: Path) -> None:
    path.write_bytes(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4000, 4000), }", bytes(100)))


@hostile("npy", "trailing_data")
def body_too_long(path: Path) -> None:
    path.write_bytes(saved(np.zeros(3)) + b"more")


@hostile("npy", "non_finite")
def array_with_infinity(path: Path) -> None:
    path.write_bytes(saved(np.array([1.0, np.inf])))


@hostile("npy", "bad_format")
def text_named_npy(path: Path) -> None:
    path.write_text("1 2 3\n" * 100)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@hostile("npz", "pickled")
def pickled_member(path: Path) -> None:
    path.write_bytes(zipped({"a.npy": saved(np.array([Bang()], dtype=object))}))


@hostile("npz", "too_large")
def member_claims_a_petabyte(path: Path) -> None:
    path.write_bytes(
        zipped(
            {"a.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 100000), }")}
        )
    )


@hostile("npz", "trailing_data")
def member_bomb(path: Path) -> None:
    path.write_bytes(zipped({"a.npy": saved(np.zeros(3)) + bytes(200 << 20)}))


@hostile("npz", "too_large")
def hundred_members(path: Path) -> None:
    path.write_bytes(zipped({f"{i}.npy": saved(np.zeros(1)) for i in range(100)}))


@hostile("npz", "bad_format")
def member_outside(path: Path) -> None:
    path.write_bytes(zipped({"../../evil.py": b"print()"}))


@hostile("npz", "corrupt")
def archive_cut_short(path: Path) -> None:
    packed = zipped({"a.npy": saved(np.arange(1000))})
    path.write_bytes(packed[: len(packed) // 2])


@hostile("npz", "corrupt")
def member_garbled(path: Path) -> None:
    packed = bytearray(zipped({"a.npy": saved(np.random.default_rng(0).random(1000))}))
    packed[300:400] = bytes(100)
    path.write_bytes(packed)


@hostile("npz", "corrupt")
def npy_named_npz(path: Path) -> None:
    path.write_bytes(saved(np.zeros(3)))


@hostile("npz", "bad_format")
def member_twice(path: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr("a.npy", saved(np.zeros(3)))


@hostile("npz", "bad_format")
def member_that_chooses_its_memory(path: Path) -> None:
    path.write_bytes(zipped({"a.npy": saved(np.zeros(3))}, zipfile.ZIP_LZMA))


@hostile("npz", "corrupt")
def member_with_a_password(path: Path) -> None:
    packed = bytearray(zipped({"a.npy": saved(np.zeros(3))}))
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(packed)


@hostile("npz", "too_large")
def second_directory_of_millions(path: Path) -> None:
    packed = zipped({"a.npy": saved(np.zeros(3))})
    place = packed.index(b"PK\x01\x02")
    end = packed.index(b"PK\x05\x06")
    entry, count = packed[place:end], 1_000_000
    large = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, count * len(entry), place
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, place + count * len(entry), 1)
    path.write_bytes(packed[:place] + entry * count + large + locator + packed[end:])


@hostile("npz", "non_finite")
def member_of_nan(path: Path) -> None:
    path.write_bytes(zipped({"a.npy": saved(np.zeros(3)), "b.npy": saved(np.full(3, np.nan))}))


@hostile("npz", "truncated")
def member_that_claims_more(path: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4000, 4000), }"
    path.write_bytes(zipped({"a.npy": npy(header, bytes(100))}))


@hostile("npz", "too_large")
def members_that_pass_the_cap_together(path: Path) -> None:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (60000, 1000), }"
    path.write_bytes(zipped({f"{n}.npy": npy(header, bytes(60_000_000)) for n in range(2)}))


# --- pictures --------------------------------------------------------------------------------------------------------


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + png_chunk(b"IEND", b"")


@hostile("image", "too_large")
def picture_of_30000_squared(path: Path) -> None:
    path.write_bytes(png(30000, 30000, png_chunk(b"IDAT", zlib.compress(bytes(1000)))))


@hostile("image", "too_large")
def picture_of_two_billion_squared(path: Path) -> None:
    path.write_bytes(png(2**31 - 1, 2**31 - 1, png_chunk(b"IDAT", b"")))


@hostile("image", "too_large")
def picture_bomb_fully_encoded(path: Path) -> None:
    path.write_bytes(png(12000, 12000, png_chunk(b"IDAT", zlib.compress(bytes(12000 * 12001), 1))))


@hostile("image", "truncated")
def picture_cut_short(path: Path) -> None:
    content = encoded(Image.effect_noise((200, 200), 50), "PNG")
    path.write_bytes(content[: len(content) // 2])


@hostile("image", "truncated")
def jpeg_cut_short(path: Path) -> None:
    content = encoded(Image.effect_noise((200, 200), 50), "JPEG")
    path.write_bytes(content[: len(content) // 2])


@hostile("image", "truncated")
def pixels_missing(path: Path) -> None:
    path.write_bytes(png(100, 100, png_chunk(b"IDAT", zlib.compress(bytes(10)))))


@hostile("image", "bad_format")
def width_of_zero(path: Path) -> None:
    path.write_bytes(png(0, 10, png_chunk(b"IDAT", zlib.compress(bytes(10)))))


@hostile("image", "animated")
def animated_png(path: Path) -> None:
    frames = [Image.new("L", (8, 8), shade) for shade in (0, 100, 200)]
    path.write_bytes(encoded(frames[0], "PNG", save_all=True, append_images=frames[1:]))


@hostile("image", "animated")
def tiff_of_pages(path: Path) -> None:
    frames = [Image.new("L", (8, 8), shade) for shade in range(200)]
    path.write_bytes(encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:]))


@hostile("image", "bad_format")
def gif_instead(path: Path) -> None:
    path.write_bytes(encoded(Image.new("L", (8, 8)), "GIF"))


@hostile("image", "bad_format")
def svg_with_entities(path: Path) -> None:
    path.write_text('<?xml version="1.0"?><!DOCTYPE s [<!ENTITY a "aaaaaaaaaa">]><svg>&a;</svg>')


@hostile("image", "bad_format")
def text_bomb_in_png(path: Path) -> None:
    text = b"note\0\0" + zlib.compress(bytes(100 << 20), 9)
    path.write_bytes(png(8, 8, png_chunk(b"zTXt", text), png_chunk(b"IDAT", zlib.compress(bytes(72)))))


@hostile("image", "non_finite")
def tiff_of_nan(path: Path) -> None:
    path.write_bytes(encoded(Image.fromarray(np.full((8, 8), np.nan, np.float32)), "TIFF"))


@hostile("image", "bad_format")
def tiff_that_points_at_itself(path: Path) -> None:
    entry = struct.pack("<HHII", 256, 3, 1, 8)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 1) + entry + struct.pack("<I", 8))


# --- DICOM -----------------------------------------------------------------------------------------------------------


def dicom(
    path: Path, pixels: bytes | None = bytes(2 * 6 * 5), syntax: str = "1.2.840.10008.1.2.1", **fields: Any
) -> None:
    pydicom = pytest.importorskip("pydicom")
    dataset = pydicom.Dataset()
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    dataset.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    plain = {"Rows": 6, "Columns": 5, "BitsAllocated": 16, "PixelRepresentation": 0, "SamplesPerPixel": 1}
    for name, value in (plain | fields).items():
        if value is not None:
            setattr(dataset, name, value)
    if pixels is not None:
        dataset.add_new("PixelData", "OW", pixels)
    dataset.save_as(path, enforce_file_format=True)


@hostile("dicom", "too_large")
def slice_of_65535_squared(path: Path) -> None:
    dicom(path, Rows=65535, Columns=65535)


@hostile("dicom", "truncated")
def slice_with_few_pixels(path: Path) -> None:
    dicom(path, pixels=bytes(20))


@hostile("dicom", "bad_dicom")
def slice_without_pixels(path: Path) -> None:
    dicom(path, pixels=None)


@hostile("dicom", "bad_dicom")
def slice_without_rows(path: Path) -> None:
    dicom(path, Rows=None)


@hostile("dicom", "bad_dicom")
def slice_of_no_rows(path: Path) -> None:
    dicom(path, Rows=0)


@hostile("dicom", "animated")
def slice_of_many_frames(path: Path) -> None:
    dicom(path, NumberOfFrames=3)


@hostile("dicom", "unsupported_dtype")
def slice_in_colour(path: Path) -> None:
    dicom(path, SamplesPerPixel=3)


@hostile("dicom", "unsupported_dtype")
def slice_of_32_bits(path: Path) -> None:
    dicom(path, BitsAllocated=32)


@hostile("dicom", "non_finite")
def slope_of_nan(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dicom(path, RescaleSlope="nan")


@hostile("dicom", "bad_dicom")
def spacing_of_zero(path: Path) -> None:
    dicom(path, PixelSpacing=[0.0, 1.0])


@hostile("dicom", "bad_dicom")
def compressed_syntax(path: Path) -> None:
    dicom(path)
    path.write_bytes(path.read_bytes().replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.5\0"))


@hostile("dicom", "bad_dicom")
def deflated_bomb(path: Path) -> None:
    dicom(path)
    head = path.read_bytes()
    start = head.index(b"\x28\x00\x02\x00")  # the first element of the data set
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    body = packer.compress(head[start:] + bytes(300 << 20)) + packer.flush()
    path.write_bytes(
        head[:start].replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.1.99")[: start + 2] + body
    )


@hostile("dicom", "bad_dicom")
def dicom_cut_short(path: Path) -> None:
    dicom(path)
    path.write_bytes(path.read_bytes()[:200])


@hostile("dicom", "truncated")
def length_beyond_the_file(path: Path) -> None:
    dicom(path)
    content = path.read_bytes()
    place = content.index(b"\xe0\x7f\x10\x00OW\0\0") + 8
    path.write_bytes(content[:place] + struct.pack("<I", 0xFFFFFFF0) + content[place + 4 : -20])


@hostile("dicom", "bad_dicom")
def sequences_nested_deeply(path: Path) -> None:
    dicom(path)
    content = path.read_bytes()
    start = content.index(b"\x28\x00\x02\x00")
    opened = b"\x08\x00\x40\x11SQ\0\0\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff"
    path.write_bytes(content[:start] + opened * 20_000 + content[start:])


@hostile("dicom", "bad_dicom")
def text_named_dicom(path: Path) -> None:
    path.write_text("not an image" * 100)


# --- JSON ------------------------------------------------------------------------------------------------------------


def writes(content: str | bytes) -> Maker:
    raw = content.encode("utf-8") if isinstance(content, str) else content

    def write(path: Path) -> None:
        path.write_bytes(raw)

    return write


def _texts(reader: str, files: dict[str, tuple[str, str | bytes]]) -> None:
    for name, (code, content) in files.items():
        maker = writes(content)
        maker.__name__ = name
        hostile(reader, code)(maker)


@hostile("json", "too_large")
def one_line_of_50_megabytes(path: Path) -> None:
    path.write_bytes(b'{"answer": "' + b"a" * (50 << 20) + b'"}')


@hostile("json", "too_large")
def million_boxes(path: Path) -> None:
    box = {"class": "cell", "score": 0.5, "x1": 1, "y1": 2, "x2": 3, "y2": 4}
    path.write_text('{"boxes": [' + ", ".join([json.dumps(box)] * 1_000_000) + "]}")


_texts(
    "json",
    {
        "two_million_empty_lists": ("too_large", "[" + "[]," * 2_000_000 + "[]]"),
        "nested_100000_deep": ("too_deep", "[" * 100_000 + "]" * 100_000),
        "nested_objects": ("too_deep", '{"a":' * 5000 + "1" + "}" * 5000),
        "not_a_number": ("bad_json", '{"score": NaN}'),
        "infinity": ("bad_json", "[Infinity]"),
        "number_beyond_double": ("bad_json", "[1e999]"),
        "number_of_100000_digits": ("bad_json", "[" + "9" * 100_000 + "]"),
        "duplicate_key": ("duplicate_key", '{"answer": "a", "answer": "b"}'),
        "duplicate_key_inside": ("duplicate_key", '{"boxes": [{"x1": 1, "x1": 2}]}'),
        "endless_string_of_quotes": ("bad_json", '"' + '\\"' * 2_000_000),
        "endless_string_in_brackets": ("bad_json", '["' + '\\"' * 2_000_000),
        "half_a_pair": ("lone_surrogate", '{"answer": "\\ud800"}'),
        "half_a_pair_as_key": ("lone_surrogate", '{"\\udfff": 1}'),
        "utf_16": ("not_utf8", '{"answer": "no"}'.encode("utf-16")),
        "utf_16_without_mark": ("bad_json", '{"answer": "no"}'.encode("utf-16-le")),
        "latin_1": ("not_utf8", '{"answer": "é"}'.encode("latin-1")),
        "utf_8_with_mark": ("byte_order_mark", b"\xef\xbb\xbf{}"),
        "overlong_encoding": ("not_utf8", b'{"a": "\xc0\xaf"}'),
        "cut_short": ("bad_json", '{"answer": "n'),
        "two_values": ("bad_json", "{} {}"),
        "comment": ("bad_json", "{} // yes"),
        "python_literal": ("bad_json", "{'answer': True}"),
        "control_character": ("bad_json", '{"answer": "a\x00b"}'),
        "only_spaces": ("bad_json", "   \n"),
        "marks_to_be_sorted": ("too_many_marks", '{"a": "' + "\u0315\u0300" * 1_000_000 + '"}'),
        "escaped_marks_to_be_sorted": ("too_many_marks", '{"' + "\\u0315\\u0300" * 300_000 + '": 1}'),
    },
)

# --- CSV and text ----------------------------------------------------------------------------------------------------

_texts(
    "csv",
    {
        "mark_and_quotes": ("byte_order_mark", b'\xef\xbb\xbf"id","label"\r\n"1","a, b"\r\n'),
        "open_quote": ("bad_csv", 'id,label\n1,"a\n'),
        "text_after_quote": ("bad_csv", 'id,label\n1,"a"b\n'),
        "too_many_fields": ("bad_csv", "id,label\n1,a,b\n"),
        "too_few_fields": ("bad_csv", "id,label\n1\n"),
        "other_columns": ("bad_csv", "id,answer\n1,a\n"),
        "column_twice": ("bad_csv", "id,id,label\n1,2,a\n"),
        "no_header": ("bad_csv", "\n"),
        "zero_byte": ("control_character", "id,label\n1,a\x00b\n"),
        "utf_16": ("not_utf8", "id,label\n1,a\n".encode("utf-16")),
        "latin_1": ("not_utf8", "id,label\n1,é\n".encode("latin-1")),
        "field_of_a_megabyte": ("bad_csv", "id,label\n1," + "a" * 1_000_000 + "\n"),
        "million_rows": ("too_large", "id,label\n" + "1,a\n" * 1_000_000),
        "nine_megabytes": ("too_large", "id,label\n" + "1,aaaaaaaaaaaaa\n" * 600_000),
        "semicolons": ("bad_csv", "id;label\n1;a\n"),
    },
)
_texts(
    "text",
    {
        "zero_byte": ("control_character", "no acute\x00 process"),
        "terminal_escape": ("control_character", "no \x1b[31macute process"),
        "backspace": ("control_character", "an\x08 process"),
        "c1_control": ("control_character", "an \x85 process"),
        "utf_16": ("not_utf8", "no acute process".encode("utf-16")),
        "utf_8_with_mark": ("byte_order_mark", b"\xef\xbb\xbfno acute process"),
        "latin_1": ("not_utf8", "37 °C".encode("latin-1")),
        "surrogate_bytes": ("not_utf8", b"a \xed\xa0\x80 b"),
        "megabyte": ("too_large", "a " * 500_000),
        "png_bytes": ("not_utf8", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        "utf_32": ("not_utf8", "no acute process".encode("utf-32")),
        "utf_16_without_mark": ("control_character", "no acute process".encode("utf-16-le")),
        "delete_character": ("control_character", "no\x7f process"),
        "marks_to_be_sorted": ("too_many_marks", "a" + "\u0315\u0300" * 60_000),
    },
)
