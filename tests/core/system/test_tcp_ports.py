"""The folder of port locks lies where everybody may write, so it may be somebody else's trap."""

import os

import pytest

from kgs_core.errors import PermanentError
from kgs_core.system import tcp_ports
from kgs_core.system.tcp_ports import PortReservation


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tcp_ports.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path / f"kgs-ports-{os.getuid()}"


def test_a_folder_of_our_own_is_made_and_used_again(folder):
    first, second = PortReservation(), PortReservation()
    port = first.reserve()
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(PermanentError, match="in use"):
        second.reserve_exactly(port)
    first.release()
    assert second.reserve_exactly(port) == port
    second.release()


def test_a_link_is_refused_and_what_it_leads_to_stays(folder, tmp_path):
    """Opening a lock file empties it: through a link it would be any file of ours."""
    target = tmp_path / "mine"
    target.mkdir()
    (target / "21000").write_text("precious")
    folder.symlink_to(target)
    with pytest.raises(PermanentError, match=r"is a link.*remove it, or name another TMPDIR"):
        PortReservation().reserve(21000)
    assert (target / "21000").read_text() == "precious"


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_to_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermanentError, match="writable by others"):
        PortReservation().reserve()


def test_another_users_folder_is_refused(folder, monkeypatch):
    uid = os.getuid() + 1
    monkeypatch.setattr(tcp_ports.os, "getuid", lambda: uid)
    folder.with_name(f"kgs-ports-{uid}").mkdir(mode=0o700)
    with pytest.raises(PermanentError, match="another user's"):
        PortReservation().reserve()


def test_a_dangling_link_and_a_file_are_refused(folder):
    folder.symlink_to("/nowhere/at/all")
    with pytest.raises(PermanentError, match="is a link"):
        PortReservation().reserve()
    folder.unlink()
    folder.touch()
    with pytest.raises(PermanentError, match="is a link"):
        PortReservation().reserve()
