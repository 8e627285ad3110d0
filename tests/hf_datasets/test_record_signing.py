"""Signatures over records, with real keys: who signed is told, and everything else is refused with a reason."""

from __future__ import annotations

import subprocess

import pytest

from hf_datasets.signing import SigningError, sign_record, verify

CONTENT = b'{"overall": 0.5}\n'


@pytest.fixture
def signed(ssh_keys, tmp_path):
    """A record, its signature by ``mine``, and a file that allows ``mine`` alone."""
    record = tmp_path / "record.json"
    record.write_bytes(CONTENT)
    allowed = tmp_path / "allowed"
    allowed.write_text(
        f'# people\nsomeone@example.org namespaces="automedbench" {(ssh_keys / "mine.pub").read_text()}'
    )
    return record, sign_record(record, ssh_keys / "mine").read_bytes(), allowed


def test_a_signature_tells_who_made_it(signed):
    record, signature, allowed = signed
    assert record.with_name("record.json.sig").read_bytes() == signature
    assert verify(CONTENT, signature, allowed) == "someone@example.org"


def test_other_bytes_are_refused(signed):
    _, signature, allowed = signed
    with pytest.raises(SigningError, match="incorrect signature"):
        verify(CONTENT.replace(b"5", b"9"), signature, allowed)


def test_somebody_who_is_not_listed_is_refused(signed, ssh_keys):
    record, _, allowed = signed
    theirs = sign_record(record, ssh_keys / "theirs").read_bytes()
    with pytest.raises(SigningError, match="no listed signer"):
        verify(CONTENT, theirs, allowed)


def test_a_signature_for_another_purpose_is_refused(signed, ssh_keys):
    record, _, allowed = signed
    record.with_name("record.json.sig").unlink()
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", ssh_keys / "mine", record], check=True
    )
    with pytest.raises(SigningError, match="namespace"):
        verify(CONTENT, record.with_name("record.json.sig").read_bytes(), allowed)


@pytest.mark.parametrize("junk", [b"", b"\0" * 100, b"-----BEGIN SSH SIGNATURE-----\nAAAA\n", b"x" * 70_000])
def test_what_is_no_signature_is_refused_in_one_line(signed, junk):
    _, _, allowed = signed
    with pytest.raises(SigningError) as refused:
        verify(CONTENT, junk, allowed)
    assert "\n" not in str(refused.value)


def test_missing_files_are_named(signed, tmp_path):
    record, signature, _ = signed
    with pytest.raises(SigningError, match="expected an SSH key"):
        sign_record(record, tmp_path / "nothing")
    with pytest.raises(SigningError, match="allowed signers"):
        verify(CONTENT, signature, tmp_path / "nothing")
    with pytest.raises(SigningError, match="No such file"):
        sign_record(tmp_path / "no-record.json", tmp_path / "nothing")
