"""Dagster's folder in a demonstration, and what is asked of its webserver."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from kgs_core.adapters.system.tcp_ports import HOST, PortReservation
from kgs_core.config import parse_settings
from kgs_core.demo import dagster_home
from kgs_core.demo.dagster_home import DagsterHome
from kgs_core.demo.layout import Layout
from kgs_core.demo.replay import TOPICS
from kgs_core.errors import PermanentError


@pytest.fixture
def ports():
    reserved = PortReservation()
    yield reserved
    reserved.release()


@pytest.fixture
def home(tmp_path, ports):
    return DagsterHome(tmp_path / "dagster", ports.reserve(), ports.reserve())


@pytest.fixture
def answering(home):
    """A webserver that gives the answer set on it; what it was asked is kept."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(server.answer)

        def log_message(self, *_):
            pass

    asked = []
    server = HTTPServer((HOST, home.web_port), Answer)
    server.answer, server.asked = b"", asked
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_home_has_the_settings_of_one_machine_and_one_place_of_code(home):
    home.prepare()
    assert (home.directory / "dagster.yaml").read_text() == (Path(__file__).parents[3] / "dagster.yaml").read_text()
    (place,) = yaml.safe_load((home.directory / "workspace.yaml").read_text())["load_from"]
    assert place == {"grpc_server": {"host": HOST, "port": home.code_port, "location_name": "kgs"}}


def test_a_home_that_is_there_is_refused_in_one_line(home):
    home.prepare()
    with pytest.raises(PermanentError, match=r"dagster: File exists: name another --directory"):
        home.prepare()


def test_without_its_settings_the_way_out_is_named(home, monkeypatch, tmp_path):
    monkeypatch.setattr(dagster_home, "_SETTINGS", tmp_path / "dagster.yaml")
    with pytest.raises(PermanentError, match=r"dagster.yaml: not there: .*`kgs demo --bare`"):
        home.prepare()


def test_a_dagster_of_the_user_has_no_say(home, tmp_path):
    inner = home.environ({"DAGSTER_HOME": "/mine", "DAGSTER_INSTANCE_REF": "x", "PATH": "/bin"}, tmp_path / "kgs.yaml")
    assert inner["DAGSTER_HOME"] == str(home.directory)
    assert inner["KGS_CONFIG"] == str(tmp_path / "kgs.yaml")
    assert inner["PATH"] == "/bin"
    assert "DAGSTER_INSTANCE_REF" not in inner


def test_everything_listens_on_this_machine_only(home):
    for command in (home.code_server_command(), home.webserver_command()):
        assert command[command.index("-h") + 1] == "127.0.0.1"


def test_open_runs_are_those_that_the_webserver_names(home, answering):
    answering.answer = b'{"data": {"runsOrError": {"results": [{"runId": "a"}, {"runId": "b"}]}}}'
    assert home.serves_people()
    assert home.open_runs() == {"a", "b"}
    answering.answer = b'{"data": {"runsOrError": {"results": []}}}'
    assert home.open_runs() == frozenset()
    assert "SUCCESS" not in answering.asked[0]["query"]


@pytest.mark.parametrize("answer", [b"", b"not found", b"[]", b'{"errors": []}', b'{"data": {"runsOrError": {}}}'])
def test_an_answer_that_says_nothing_is_not_taken_for_no_runs(home, answering, answer):
    answering.answer = answer
    assert home.open_runs() is None


def test_nobody_there(home):
    assert home.open_runs() is None
    assert not home.serves_code()


def test_every_topic_has_a_rule_and_so_a_table_in_the_lineage(tmp_path):
    text = Layout(tmp_path).configuration("127.0.0.1:1")
    settings = parse_settings(text.encode(), "kgs.yaml", {})
    assert [rule.topic for rule in settings.topics] == list(TOPICS)
    assert "&" not in text, "people read this file"


def test_compiled_modules_are_kept_in_the_cache_where_they_are_not_wanted_beside_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_CACHE", str(tmp_path / "cache"))
    scene = Layout(tmp_path)
    inner = scene.environ({"PYTHONDONTWRITEBYTECODE": "1"})
    assert "PYTHONDONTWRITEBYTECODE" not in inner
    assert inner["PYTHONPYCACHEPREFIX"] == str(tmp_path / "cache" / "bytecode")
    assert scene.environ({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/p"})["PYTHONPYCACHEPREFIX"] == "/p"
    assert "PYTHONPYCACHEPREFIX" not in scene.environ({})
