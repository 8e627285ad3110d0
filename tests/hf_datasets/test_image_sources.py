"""Sources of the enhancement and synthesis tasks: what staging takes from them, and every damage is one named line."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import tarfile
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pydicom
import pytest
from PIL import Image

from hf_datasets.phantoms import make_phantom
from hf_datasets.phantoms.metaimage import write_mha
from hf_datasets.staging import stage
from hf_datasets.staging.metaimage import read_mha
from tasks.manifest import load_manifest

FASTMRI, BRATS, IXI, CXR = "mri-sr-task", "brats-t1c-sr-task", "ixi-t1-sr-task", "nih-cxr-sr-task"
LIDC, LESION = "lidc-idri-denoising-task", "deeplesion-denoising-task"
SYNTHRAD, CTORG = "synthrad2025-mrct-task", "ctorg-ctsr-task"
PANCREAS, BODY = "msd-pancreas-ctsr-task", "totalsegmentator-ctsr-task"
ALL = (FASTMRI, BRATS, IXI, CXR, LIDC, LESION, SYNTHRAD, CTORG, PANCREAS, BODY)


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """``raw(task)``: the task's raw phantom, made when it is first asked for."""
    root = tmp_path_factory.mktemp("raw")
    return lambda task_id: make_phantom(task_id, root / task_id, seed=0)


@pytest.fixture
def copy(raw, tmp_path):
    return lambda task_id: Path(shutil.copytree(raw(task_id), tmp_path / "raw"))


@pytest.fixture
def staged(raw, tmp_path):
    """``staged(task)``: pairs of the public and the private folder of each case, and the manifest."""

    def make(task_id, source=None, seed=0):
        stage(task_id, source or raw(task_id), tmp_path / "data", release="phantom", seed=seed)
        folder = tmp_path / "data" / "phantom" / task_id
        manifest = load_manifest(folder)
        return [
            (folder / "public" / case.id, folder / "private" / case.id) for case in manifest.cases
        ], manifest

    return make


def first(root: Path, pattern: str) -> Path:
    return sorted(root.rglob(pattern))[0]


# --- what is taken ---


@pytest.mark.parametrize("task_id", [FASTMRI, BRATS, IXI, CXR])
def test_small_and_large_image_show_the_same(task_id, staged):
    cases, _ = staged(task_id)
    for public, private in cases:
        small, large = np.load(public / "input.npy"), np.load(private / "reference.npy")
        assert small.dtype == large.dtype == np.float32
        assert large.shape == tuple(2 * side for side in small.shape)
        assert min(small.min(), large.min()) >= 0
        assert max(small.max(), large.max()) <= 1
        assert large.max() > 0.9
        blocks = large.reshape(small.shape[0], 2, small.shape[1], 2).mean(axis=(1, 3))
        assert np.corrcoef(blocks.ravel(), small.ravel())[0, 1] > 0.96


@pytest.mark.parametrize("task_id", [LIDC, LESION])
def test_noise_lies_on_the_window_and_is_not_clipped(task_id, staged):
    cases, _ = staged(task_id)
    seen = set()
    for public, private in cases:
        given, clean = np.load(public / "input.npy"), np.load(private / "reference.npy")
        assert clean.shape == given.shape == (192, 192)
        assert clean.min() >= 0
        assert clean.min() < 0.05
        assert 0.5 < float(clean.max()) <= 1
        assert given.min() < -0.1
        assert (given - clean).std() == pytest.approx(0.05, rel=0.02)
        seen.add(float((given - clean)[0, 0]))
    assert len(seen) == len(cases)


@pytest.mark.parametrize("task_id", [CTORG, PANCREAS, BODY])
def test_thick_slices_share_grid_and_slab_means_with_the_thin_ones(task_id, staged):
    cases, _ = staged(task_id)
    for public, private in cases:
        thick, thin = nibabel.load(public / "ct.nii.gz"), nibabel.load(private / "ct.nii.gz")
        assert np.array_equal(thick.affine, thin.affine)
        given, clean = (np.asarray(image.dataobj).astype(np.float64) for image in (thick, thin))
        assert given.shape == clean.shape
        assert given.shape[2] % 4 == 0
        slabs = clean.reshape(*clean.shape[:2], -1, 4).mean(axis=3)
        assert 1.5 * given[..., 2::4] - 0.5 * given[..., 3::4] == pytest.approx(slabs, abs=1.1)


def test_a_cut_out_of_a_long_scan_stays_in_its_place(copy, staged):
    source = copy(CTORG)
    for path in sorted((source / "OrganSegmentations").iterdir())[1:]:
        if path.name not in ("labels-0.nii.gz", "volume-0.nii.gz"):
            path.unlink()
    path = source / "OrganSegmentations" / "volume-0.nii.gz"
    scan = nibabel.load(path)
    data = np.concatenate([np.asarray(scan.dataobj)] * 4, axis=2)
    nibabel.save(nibabel.Nifti1Image(data, scan.affine), path)
    [(_, private)], _ = staged(CTORG, source)
    cut = nibabel.load(private / "ct.nii.gz")
    start = np.linalg.solve(scan.affine, np.append(cut.affine[:3, 3], 1))[2]
    assert cut.shape[2] == 128
    assert start == pytest.approx(round(start))
    assert np.array_equal(np.asarray(cut.dataobj), data[:, :, round(start) : round(start) + 128])


def test_mr_mask_and_ct_keep_upstreams_geometry(raw, staged):
    cases, manifest = staged(SYNTHRAD)
    for (public, private), case in zip(cases, manifest.cases, strict=True):
        upstream = read_mha(first(raw(SYNTHRAD), case.origin) / "ct.mha")
        ct, mr, mask = (
            nibabel.load(path)
            for path in (private / "ct.nii.gz", public / "mr.nii.gz", public / "mask.nii.gz")
        )
        assert np.array_equal(np.asarray(ct.dataobj), upstream.data)
        for image in (ct, mr, mask):
            assert image.affine == pytest.approx(upstream.affine, abs=1e-4)
        inside = np.asarray(mask.dataobj) > 0
        assert np.mean(upstream.data[~inside] < -900) > 0.99
        assert np.asarray(mr.dataobj)[inside].mean() > 5 * np.asarray(mr.dataobj)[~inside].mean()


def test_one_volume_a_patient_and_no_test_part_of_fastmri(copy, staged):
    source = copy(FASTMRI)
    volumes = sorted((source / "multicoil_val").iterdir())
    shutil.copy(volumes[0], source / "multicoil_val" / "file_brain_AXT9_000_0000001.h5")
    (source / "multicoil_test").mkdir()
    (source / "multicoil_test" / "file_brain_AXT1_200_0000002.h5").write_bytes(b"undersampled")
    _, manifest = staged(FASTMRI, source)
    assert len(manifest.cases) == len(volumes)


def test_singlecoil_files_are_read_too(copy, staged):
    source = copy(FASTMRI)
    for path in sorted((source / "multicoil_val").iterdir()):
        with h5py.File(path, "a") as file:
            single = file["kspace"][:, 0]
            spectrum = np.fft.ifftshift(single, axes=(-2, -1))
            image = np.abs(np.fft.fftshift(np.fft.ifft2(spectrum, norm="ortho"), axes=(-2, -1)))[:, 60:-60]
            del file["kspace"]
            file["kspace"], file["reconstruction_esc"] = single, image.astype(np.float32)
    cases, _ = staged(FASTMRI, source)
    assert all(np.load(private / "reference.npy").shape == (120, 120) for _, private in cases)


def test_ixi_is_read_from_its_tar_and_unpacked_alike(copy, staged, tmp_path):
    source = copy(IXI)
    packed, _ = staged(IXI, source)
    before = [np.load(private / "reference.npy") for _, private in packed]
    with tarfile.open(source / "IXI-T1.tar") as tar:
        tar.extractall(source / "IXI-T1", filter="data")
    (source / "IXI-T1.tar").unlink()
    unpacked, _ = staged(IXI, source)
    assert all(
        np.array_equal(a, np.load(private / "reference.npy"))
        for a, (_, private) in zip(before, unpacked, strict=True)
    )


def test_lidc_takes_a_slice_that_readers_outlined_and_nothing_but_pixels(copy, raw, staged):
    cases, manifest = staged(LIDC)
    marked = 0
    for (_, private), case in zip(cases, manifest.cases, strict=True):
        patient = first(raw(LIDC), case.origin)
        heights, slices = {}, {}
        for path in patient.rglob("*.dcm"):
            header = pydicom.dcmread(path)
            heights[header.SOPInstanceUID] = float(header.ImagePositionPatient[2])
            slices[header.SOPInstanceUID] = np.clip(
                (header.pixel_array.astype(float) - 1024 + 1000) / 2000, 0, 1
            )
        clean = np.load(private / "reference.npy")
        [chosen] = [uid for uid, pixels in slices.items() if np.allclose(pixels, clean, atol=1e-6)]
        outlined = first(patient, "*.xml").read_text()
        if "<roi>" in outlined:
            marked += 1
            count = {uid: outlined.count(f">{uid}<") for uid in slices}
            assert count[chosen] == max(count.values())
    assert marked == 4


def test_deeplesion_leaves_noisy_lines_and_other_splits_aside(copy, staged):
    source = copy(LESION)
    rows = table(source / "DL_info.csv")
    rows[2]["Possibly_noisy"], rows[3]["Train_Val_Test"] = "1", "1"
    write_table(source / "DL_info.csv", rows)
    _, manifest = staged(LESION, source)
    gone = {rows[2]["File_name"][:-4], rows[3]["File_name"][:-4]}
    assert len(manifest.cases) == 4
    assert not gone & {case.origin for case in manifest.cases}


# --- damages ---


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def write_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def edit(path: Path, change) -> None:
    rows = table(path)
    change(rows)
    write_table(path, rows)


def rewrite(path: Path, change, move=lambda affine: affine) -> None:
    image = nibabel.load(path)
    nibabel.save(
        nibabel.Nifti1Image(change(np.asarray(image.dataobj).copy()), move(image.affine.copy())), path
    )


def in_h5(name, change):
    def damage(raw: Path) -> None:
        with h5py.File(first(raw, "*.h5"), "a") as file:
            change(file, name)

    return damage


def replace(make):
    def change(file, name) -> None:
        data = make(file[name][()])
        del file[name]
        file[name] = data

    return change


def steal_reconstruction(raw: Path) -> None:
    one, other = sorted(raw.rglob("*.h5"))[:2]
    with h5py.File(one, "a") as file, h5py.File(other) as another:
        file["reconstruction_rss"][...] = np.roll(another["reconstruction_rss"][()], 25, axis=1)


FASTMRI_DAMAGES = {
    "no reconstruction": (
        in_h5("reconstruction_rss", lambda f, n: f.__delitem__(n)),
        "expected fully sampled kspace",
    ),
    "undersampled": (
        in_h5("mask", lambda f, n: f.__setitem__(n, np.ones(4))),
        "is this a file of a test part",
    ),
    "magnitudes only": (in_h5("kspace", replace(np.abs)), "expected complex kspace"),
    "fewer slices": (in_h5("reconstruction_rss", replace(lambda a: a[:1])), "as many reconstructed slices"),
    "another's reconstruction": (steal_reconstruction, "expected a reconstruction of this kspace"),
    "not finite": (in_h5("kspace", replace(lambda a: a * np.nan)), "expected finite values"),
    "nobody's": (
        in_h5("", lambda f, n: f.attrs.__delitem__("patient_id")),
        "expected the attribute patient_id",
    ),
    "truncated": (lambda raw: cut(first(raw, "*.h5")), "not a complete HDF5 file"),
    "nothing": (lambda raw: shutil.rmtree(raw / "multicoil_val"), "expected fully sampled files such as"),
}
BRATS_DAMAGES = {
    "missing label": (lambda raw: first(raw, "*-seg.nii.gz").unlink(), "-seg.nii.gz, found"),
    "missing scan": (lambda raw: first(raw, "*-t1c.nii.gz").unlink(), "-t1c.nii.gz, found"),
    "extra file": (
        lambda raw: (first(raw, "*-seg.nii.gz").parent / "seg.npz").write_bytes(b"x"),
        "unexpected seg.npz",
    ),
    "other spacing": (
        lambda raw: rewrite(first(raw, "*-seg.nii.gz"), lambda d: d, lambda a: a @ np.diag([1, 1, 1.1, 1])),
        "expected the grid of",
    ),
    "other shape": (lambda raw: rewrite(first(raw, "*-seg.nii.gz"), lambda d: d[:-1]), "expected shape"),
    "unknown label": (
        lambda raw: rewrite(first(raw, "*-seg.nii.gz"), lambda d: d * 2),
        "expected the labels 0, 1, 2, 3",
    ),
    "no tumour": (lambda raw: rewrite(first(raw, "*-seg.nii.gz"), lambda d: d * 0), "background only"),
    "no signal": (lambda raw: rewrite(first(raw, "*-t1c.nii.gz"), lambda d: d * 0), "expected signal"),
    "truncated": (lambda raw: cut(first(raw, "*-t1c.nii.gz")), "not a complete NIfTI"),
    "misnamed": (
        lambda raw: first(raw, "BraTS-GLI-*").rename(first(raw, "BraTS-GLI-*").with_name("BraTS-GLI-1-0")),
        "expected a name such as",
    ),
}


def add_to_tar(raw: Path, name: str, content: bytes = b"x") -> None:
    with tarfile.open(raw / "IXI-T1.tar", "a") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))


def repack(raw: Path, change) -> None:
    with tarfile.open(raw / "IXI-T1.tar") as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]
    with tarfile.open(raw / "IXI-T1.tar", "w") as tar:
        for number, (member, content) in enumerate(members):
            content = change(content) if number == 0 else content
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def black(content: bytes) -> bytes:
    image = nibabel.Nifti1Image.from_bytes(gzip.decompress(content))
    dark = nibabel.Nifti1Image(np.zeros(image.shape, np.int16), image.affine)
    return gzip.compress(dark.to_bytes())


IXI_DAMAGES = {
    "extra file": (lambda raw: add_to_tar(raw, "IXI.xls"), "expected T1 scans only, found IXI.xls"),
    "another contrast": (lambda raw: add_to_tar(raw, "IXI002-Guys-0828-T2.nii.gz"), "expected T1 scans only"),
    "a subject twice": (lambda raw: add_to_tar(raw, twin(raw)), "expected each upstream id once"),
    "truncated tar": (lambda raw: cut(raw / "IXI-T1.tar", 0.55), "IXI-T1.tar"),
    "truncated scan": (
        lambda raw: repack(raw, lambda content: content[: len(content) // 2]),
        "not a complete NIfTI",
    ),
    "black scan": (lambda raw: repack(raw, black), "expected signal"),
    "nothing": (lambda raw: (raw / "IXI-T1.tar").unlink(), "expected IXI-T1.tar or files"),
}


def twin(raw: Path) -> str:
    """Another scan of the first subject."""
    with tarfile.open(raw / "IXI-T1.tar") as tar:
        return tar.getnames()[0].split("-")[0] + "-HH-9999-T1.nii.gz"


def misattribute(raw: Path) -> None:
    """The first line's film gets another patient's number."""
    path = raw / "Data_Entry_2017.csv"
    path.write_text(path.read_text().replace("\n0000", "\n0009", 1))


CXR_DAMAGES = {
    "missing table": (lambda raw: (raw / "Data_Entry_2017.csv").unlink(), "expected this table"),
    "table of other columns": (
        lambda raw: (raw / "Data_Entry_2017.csv").write_text("a,b\n1,2\n"),
        "expected the columns",
    ),
    "swapped ids": (misattribute, "expected a film named after its patient"),
    "unlisted film": (
        lambda raw: shutil.copy(first(raw, "*.png"), first(raw, "*.png").with_name("00030000_000.png")),
        "does not list 00030000_000.png",
    ),
    "wrong size": (lambda raw: resize(first(raw, "*_000.png"), (500, 512)), "expected a square film"),
    "truncated film": (lambda raw: cut(first(raw, "*_000.png")), "not a complete picture"),
    "blank film": (
        lambda raw: Image.new("L", (512, 512), 7).save(first(raw, "*_000.png")),
        "found one grey value",
    ),
    "nothing": (lambda raw: shutil.rmtree(raw / "images_001"), "expected films such as"),
}


def resize(path: Path, size: tuple[int, int]) -> None:
    with Image.open(path) as image:
        image.resize(size).save(path)


def unshift(raw: Path) -> None:
    path = key_slice(raw)
    with Image.open(path) as image:
        pixels = np.asarray(image).astype(np.int32)
    Image.fromarray((pixels - 31744).astype(np.uint16)).save(path)


def key_slice(raw: Path) -> Path:
    row = table(raw / "DL_info.csv")[1]
    folder, _, name = row["File_name"].rpartition("_")
    return raw / "Images_png" / folder / name


LESION_DAMAGES = {
    "missing table": (lambda raw: (raw / "DL_info.csv").unlink(), "expected this table"),
    "missing slices": (lambda raw: shutil.rmtree(raw / "Images_png"), "expected Images_png/"),
    "none of the slices": (
        lambda raw: [path.unlink() for path in (raw / "Images_png").rglob("*.png")],
        "expected slices that DL_info.csv names",
    ),
    "swapped ids": (
        lambda raw: edit(raw / "DL_info.csv", lambda rows: rows[1].update(Patient_index="7777")),
        "patient '7777'",
    ),
    "a path for a name": (
        lambda raw: edit(raw / "DL_info.csv", lambda rows: rows[1].update(File_name="../../x_01.png")),
        "expected a file of patient",
    ),
    "wrong size": (
        lambda raw: edit(raw / "DL_info.csv", lambda rows: rows[1].update(Image_size="512, 512")),
        "512 x 512 as",
    ),
    "no size": (
        lambda raw: edit(raw / "DL_info.csv", lambda rows: rows[1].update(Image_size="big")),
        "expected an Image_size",
    ),
    "eight bits": (lambda raw: Image.new("L", (192, 192)).save(key_slice(raw)), "expected 16-bit grey"),
    "offset taken off": (unshift, "was the offset taken off"),
    "truncated": (lambda raw: cut(key_slice(raw)), "not a complete PNG"),
    "column gone": (lambda raw: (raw / "DL_info.csv").write_text("File_name\nx\n"), "expected the columns"),
}


def retag(pattern: str, **tags):
    def damage(raw: Path) -> None:
        for path in sorted(raw.rglob(pattern)):
            image = pydicom.dcmread(path)
            for name, value in tags.items():
                setattr(image, name, value)
            image.save_as(path)

    return damage


LIDC_DAMAGES = {
    "another patient's slice": (
        retag("1-002.dcm", PatientID="LIDC-IDRI-9999"),
        "found one of another patient",
    ),
    "two series": (retag("1-003.dcm", SeriesInstanceUID="1.2.3"), "expected one series in a folder"),
    "no CT": (retag("*.dcm", Modality="DX"), "expected a CT series"),
    "a slice twice": (
        lambda raw: shutil.copy(first(raw, "1-001.dcm"), first(raw, "1-001.dcm").with_name("1-009.dcm")),
        "expected each slice once",
    ),
    "no position": (retag("1-001.dcm", ImagePositionPatient=None), "expected ImagePositionPatient"),
    "swapped readings": (lambda raw: swap(*sorted(raw.rglob("*.xml"))[:2]), "found those of another"),
    "truncated readings": (lambda raw: cut(first(raw, "*.xml")), "not well-formed XML"),
    "truncated slices": (
        lambda raw: [cut(path, 0.9) for path in raw.rglob("*.dcm")],
        "download the series again",
    ),
    "no DICOM": (lambda raw: first(raw, "*.dcm").write_bytes(b"text"), "not a DICOM file"),
    "other units": (retag("*.dcm", RescaleIntercept="3000"), "expected a chest slice in HU"),
    "misnamed": (
        lambda raw: first(raw, "LIDC-IDRI-*").rename(first(raw, "LIDC-IDRI-*").with_name("LIDC-IDRI-1")),
        "expected a name such as",
    ),
}


def remake(raw: Path, name: str, change, spacing=None) -> None:
    path = first(raw, f"{name}.mha")
    volume = read_mha(path)
    origin = volume.affine[:3, 3] * (-1, -1, 1)
    write_mha(path, change(volume.data), spacing or volume.spacing, origin)


def other_region(raw: Path) -> None:
    for folder in sorted((raw / "Task1" / "HN").iterdir()):
        folder.rename(folder.with_name("1AB" + folder.name[3:]))


SYNTHRAD_DAMAGES = {
    "missing ct": (lambda raw: first(raw, "ct.mha").unlink(), "expected ct.mha"),
    "missing mask": (lambda raw: first(raw, "mask.mha").unlink(), "expected mask.mha"),
    "other shape": (lambda raw: remake(raw, "ct", lambda d: d[:-1]), "expected shape"),
    "other spacing": (lambda raw: remake(raw, "ct", lambda d: d, (2.8, 2.8, 5.0)), "expected the grid of"),
    "swapped": (lambda raw: swap(first(raw, "mr.mha"), first(raw, "ct.mha")), "are mr and ct swapped"),
    "grey mask": (lambda raw: remake(raw, "mask", lambda d: d * 3), "expected a mask of 0 and 1"),
    "truncated": (lambda raw: cut(first(raw, "ct.mha")), "download it again"),
    "misnamed": (
        lambda raw: first(raw, "1HN*").rename(first(raw, "1HN*").with_name("1HN7")),
        "expected a name such as",
    ),
    "another region": (other_region, "expected case folders such as"),
}
CTORG_DAMAGES = {
    "missing label": (lambda raw: first(raw, "labels-7.nii.gz").unlink(), "expected labels-7.nii.gz"),
    "extra file": (
        lambda raw: (raw / "OrganSegmentations" / "seg.zip").write_bytes(b"x"),
        "unexpected seg.zip",
    ),
    "unsigned units": (lambda raw: rewrite(first(raw, "volume-*"), lambda d: d + 1024), "is it rescaled"),
    "few slices": (lambda raw: rewrite(first(raw, "volume-*"), lambda d: d[:, :, :9]), "at least 12"),
    "other axis": (
        lambda raw: rewrite(first(raw, "volume-*"), lambda d: d, lambda a: a[:, [2, 0, 1, 3]]),
        "axial slices along the third axis",
    ),
    "truncated": (lambda raw: cut(first(raw, "volume-*")), "not a complete NIfTI"),
    "nothing": (
        lambda raw: [p.unlink() for p in raw.rglob("volume-*")],
        "expected scans such as volume-0.nii.gz",
    ),
}
DAMAGES = {
    FASTMRI: FASTMRI_DAMAGES,
    BRATS: BRATS_DAMAGES,
    IXI: IXI_DAMAGES,
    CXR: CXR_DAMAGES,
    LESION: LESION_DAMAGES,
    LIDC: LIDC_DAMAGES,
    SYNTHRAD: SYNTHRAD_DAMAGES,
    CTORG: CTORG_DAMAGES,
    PANCREAS: {"truncated": (lambda raw: cut(raw / "Task07_Pancreas.tar", 0.3), "Task07_Pancreas")},
    BODY: {"missing mask": (lambda raw: first(raw, "liver.nii.gz").unlink(), "missing are liver.nii.gz")},
}


@pytest.mark.parametrize(
    ("task_id", "name"), [(task_id, name) for task_id in DAMAGES for name in DAMAGES[task_id]]
)
def test_a_damaged_source_is_named_in_one_line_and_nothing_is_staged(
    task_id, name, copy, tmp_path, staging_refusal
):
    damage, words = DAMAGES[task_id][name]
    source = copy(task_id)
    damage(source)
    assert words in staging_refusal(task_id, source, tmp_path / "data")
