"""Secrets in files: read, missing for a moment, changed."""

import pytest

from kgs_core.errors import PermanentError
from kgs_core.system import secret_files
from kgs_core.system.secret_files import SecretFiles, with_secrets


def named(path):
    return {"sasl.username": "u", "sasl.password": f"${{file:{path}}}"}


@pytest.mark.parametrize(("text", "secret"), [("s", "s"), ("s\n", "s"), ("s\r\n", "s"), (" s \n\n", " s \n")])
def test_one_line_end_is_no_part_of_it(tmp_path, text, secret):
    (tmp_path / "p").write_bytes(text.encode())
    assert with_secrets("kafka.client", named(tmp_path / "p")) == {"sasl.username": "u", "sasl.password": secret}


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"a\0b", b"x" * 70_000])
def test_a_file_without_a_secret_is_refused_in_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / "p").write_bytes(content)
    with pytest.raises(PermanentError, match=r"kafka.client: sasl.password: file .*/p: .+: .+") as caught:
        with_secrets("kafka.client", named(tmp_path / "p"))
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_for_a_moment_counts_as_it_was(tmp_path, caplog):
    path = tmp_path / "p"
    path.write_text("one")
    with_secrets("w", named(path))
    path.write_text("")
    files = SecretFiles(named(path))
    for _ in range(3):
        assert with_secrets("w", named(path))["sasl.password"] == "one"
    assert len(caplog.messages) == 1
    path.unlink()
    assert with_secrets("w", named(path))["sasl.password"] == "one"
    assert not files.look()
    path.write_text("two")
    assert with_secrets("w", named(path))["sasl.password"] == "two"
    assert files.look()


def test_a_change_is_seen_by_its_content_and_in_good_time(tmp_path, monkeypatch):
    path, now = tmp_path / "ca.pem", [0.0]
    monkeypatch.setattr(secret_files.time, "monotonic", lambda: now[0])
    path.write_text("one")
    files = SecretFiles({"ssl.ca.location": str(path)})
    (tmp_path / "new").write_text("one")
    (tmp_path / "new").replace(path)
    now[0] = 6.0
    assert not files.have_changed()
    (tmp_path / "new").write_text("two")
    (tmp_path / "new").replace(path)
    assert not files.have_changed()
    now[0] = 12.0
    assert files.have_changed()
    assert not SecretFiles({"ssl.ca.location": str(path)}).look()
