"""Signs of real patients in a trace are found where they stand, and shown masked; ordinary output passes."""

from __future__ import annotations

import json

import pytest

from hf_datasets.phi import MOST_FINDINGS, screen_text, screen_trace

PATIENTS = {
    "a name as a DICOM tag holds it": ("reading DOE^JANE^A done", "DOE"),
    "a printed data set": ("(0010,0010) Patient's Name                      PN: 'Roe, Richard'", "Roe"),
    "an id in a printed data set": (
        "(0010, 0020) Patient ID                          LO: '4711234'",
        "4711234",
    ),
    "a birth date in a printed data set": ("(0010,0030) Patient's Birth Date   DA: '19501212'", "1950"),
    "an institution": ("(0008,0080) Institution Name                   LO: 'St. Elsewhere'", "Elsewhere"),
    "a labelled name": ("Patient Name: Jane O'Neill", "Neill"),
    "a keyword": ('{"ReferringPhysicianName": "House^Gregory"}', "Gregory"),
    "a record number": ("MRN 0012345678", "0012345678"),
    "a record number in words": ("medical record number is 12-34-567", "12-34-567"),
    "a social security number": ("id 123-45-6789.", "6789"),
    "a birth date": ("DOB: 03/14/1950", "1950"),
    "an id and a date": ("patient 4711234, CT of 2011-03-04", "4711234"),
    "a date and an id": ("4 March 2011: accession no. 4711234", "4711234"),
    "a row of a table": ("1234567,2011-03-04,M,61", "1234567"),
}

HARMLESS = (
    "-rw-r--r-- 1 root root 1234567 Jan  1  1980 image.png",
    "2026-12-01 16:28:42,123 INFO 1234567 voxels",
    "1980-01-01 is the time of every staged file of patient 12345",
    "Each patient has one volume; patients 1 to 20, 2019 release",
    "x^y and [^A-Z]^Foo; 2^10 = 1024; np.bitwise_xor(A^B)",
    "PatientName: Anonymous^Patient",
    "(0010,0010) Patient's Name                      PN: ''",
    "(0010,0020) Patient ID                          LO: 'LIDC-IDRI-0001'",
    "PatientID = ds.PatientID  # 12345",
    "torch 2.11.0+cu130, numpy 2.3.4, 20250115",
    "case-0bf33ffd: shape (512, 512, 300), 0.7890625 mm",
    "name, patient, dice\norgan, case-1, 0.931234567",
    "The study shows no pneumothorax. Compared to the prior exam of the patient there is no change.",
)


def trace(*texts: str) -> list[bytes]:
    events = [{"type": "run", "at": "2026-12-01T16:28:42.365596+00:00"}]
    events += [{"type": "exec", "turn": 1, "output": text} for text in texts]
    raw = "".join(json.dumps(event) + "\n" for event in events).encode()
    return [raw[at : at + 37] for at in range(0, len(raw), 37)]


@pytest.mark.parametrize("name", PATIENTS)
def test_a_patient_is_found_and_not_shown(name):
    text, secret = PATIENTS[name]
    findings = screen_trace(trace("nothing here", text), "trace.jsonl")
    assert [finding.where for finding in findings] == ["trace.jsonl:3"]
    assert secret not in str(findings[0])
    assert "\n" not in str(findings[0])


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_output_passes(text):
    assert screen_trace(trace(text), "trace.jsonl") == []


def test_arguments_of_a_call_are_opened():
    arguments = json.dumps({"language": "bash", "code": "cat > names.txt <<'E'\nDOE^JANE\nE"})
    raw = json.dumps({"type": "reply", "calls": [{"arguments": arguments}]}).encode() + b"\n"
    (finding,) = screen_trace([raw], "trace.jsonl")
    assert str(finding) == "trace.jsonl:1: patient name: xxx^xxxx"


def test_a_report_is_screened_as_text():
    (finding,) = screen_text("FINDINGS: clear lungs.\nMRN: 12345678", "submission/case-1/report.txt")
    assert str(finding) == "submission/case-1/report.txt: record number: MRN: 00000000"


def test_a_list_of_patients_gives_a_few_findings_and_ends():
    assert len(screen_trace(trace(*["DOE^JANE"] * 500), "trace.jsonl")) == MOST_FINDINGS
