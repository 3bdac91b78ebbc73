"""The lake's commands with a lake in each kind of store: what people see, what is there, what is left behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyarrow.fs import FileSelector

from bench.object_servers import GcsServer, ObjectServer
from kgs_core.cli.main import cli
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.lake.files.intent_store import IntentStore
from tests.system.pipeline import Pipeline, produce

RULE = {"format": "json", "schema": {"i": "long", "s": "string"}}


def options(server: ObjectServer) -> list[str]:
    return [a for name, value in server.storage("x").options.items() for a in ("--option", f"{name}={value}")]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def test_check_lake_finds_that_the_store_can_hold_one_and_leaves_nothing(object_server: ObjectServer) -> None:
    storage = object_server.storage("checked here/lake")
    result = run("check", "lake", storage.root, *options(object_server))
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.output.splitlines()] == ["yes"] * 7 + [f"{storage.root}:".split()[0]]
    assert storage.filesystem().get_file_info(FileSelector("", recursive=True, allow_not_found=True)) == []


def test_what_somebody_else_has_deleted_meanwhile_keeps_none_of_the_others(object_server: ObjectServer) -> None:
    store = IntentStore(object_server.storage("deleted"), "t")
    names = [f"{n:04}.json" for n in range(300)]  # more than one request takes
    for name in names:
        store.put(name, b"{}")
    store.remove(names[::7])
    store.remove([*names, "never there"])
    assert store.ages() == {}


KEYS = {"s3": "SECRET_ACCESS_KEY", "azure": "STORAGE_ACCOUNT_KEY", "gcs": "SERVICE_ACCOUNT_KEY"}


@pytest.mark.parametrize("wrong", ["key", "bucket", "option"])
def test_check_lake_says_what_is_wrong(object_server: ObjectServer, wrong: str) -> None:
    root, given = object_server.storage("x").root, options(object_server)
    if wrong == "bucket":
        root = root.replace("//lake/", "//elsewhere/")
    elif wrong == "option":
        given += ["--option", "no_such_option=1"]
    else:
        given = [f"{text[:-6]}AAAA==" if KEYS[object_server.kind] in text else text for text in given]
    result = run("check", "lake", root, *given)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("no   write a file")
    assert f"error: lake {root}: " in result.output
    assert len(result.output.splitlines()) == 2, result.output


@pytest.mark.neighbours
def test_a_gateway_that_drops_conditions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Google's store; of S3's: `test_lake_s3.py`."""
    monkeypatch.setattr(GcsServer, "translator_options", ["drops-conditions"])
    with GcsServer(tmp_path) as server:
        result = run("check", "lake", server.storage("x").root, *options(server))
    assert result.exit_code == 3, result.output
    assert "no   refuse the second of two writers" in result.output
    assert "let two writers commit the same version" in result.output.splitlines()[-1]


@pytest.mark.slow(60)
def test_every_command_that_touches_the_lake(
    object_server: ObjectServer, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}orders"
    rule = {
        "topic": topic,
        **RULE,
        "partition_by": ["i"],
        "newest_rows": {"table": f"{topic}_now", "key": ["s"], "deletes": "ignore"},
    }
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [rule], storage=object_server.storage(f"all {topic}"))
    pipeline.admin.create_topic(topic, 2)
    kgs: Callable[..., Result] = lambda *words: run(*words, "--config", str(pipeline.config))  # noqa: E731
    values = [json.dumps({"i": n % 3, "s": f"k{n % 10}"}).encode() for n in range(300)] + [b'{"i": "seven"}']

    def read() -> None:
        produce(kafka.bootstrap_servers, topic, values)
        with pipeline.consumer() as consumer:
            pipeline.wait_caught_up([topic])
            consumer.terminate()

    read()
    read()
    assert len(pipeline.rows(topic)) == 600
    for words, expected in (
        (("audit",), "  ok"),
        (("maintain",), f"{topic}: "),
        (("materialize",), f"{topic}_now"),
        (("redrive", topic, "--dry-run"), "wrong_type"),
        (("erase", topic, "--where", "s = 'k3'", "--yes", "--now"), "60 records erased"),
        (("audit",), "60 by kgs erase"),
    ):
        result = kgs(*words)
        print(result.output)
        assert result.exit_code == 0, (words, result.output)
        assert expected in result.output, (words, result.output)
    assert {row["s"] for row in pipeline.rows(f"{topic}_now")} == {f"k{n}" for n in range(10) if n != 3}
    assert len(pipeline.rows(topic)) == 540
    read()
    assert len(pipeline.rows(topic)) == 840
    assert kgs("audit").exit_code == 0
