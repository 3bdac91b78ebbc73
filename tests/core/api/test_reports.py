"""`kgs.status` and `kgs.audit`: the values of the commands, on a lake in a folder and on a group that is made up."""

import json
import re

import pytest
from click.testing import CliRunner

import kgs_core as kgs
from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError
from kgs_core.group.protocol import Incarnation
from kgs_core.lake.rule import Fault, LakeAudit, PartitionAudit, StoredPositions, TableAudit
from kgs_core.lake.rule.audit_result import Finding
from kgs_core.model import ConsumerId, OffsetRange, TopicId, TopicPartition
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.runtime import group_status
from tests.a_status import a_status
from tests.configuration import text_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ROWS = (
    ConsumerRow(ConsumerId(1), Incarnation("one"), "reading", (A,), 40.0, 39.5, 7, 1.5),
    ConsumerRow(ConsumerId(2), None, "is to be started"),
)
STATUS = a_status(current={A: ConsumerId(1)}, waiting={B: "waits"}, consumers=ROWS, lag=7)


@pytest.fixture
def config(here):
    (here / "kgs.yaml").write_text(text_of(lake="{root: lake}"))
    return "kgs.yaml"


@pytest.fixture
def group(config, monkeypatch):
    """Instead of the group's topics."""

    class Watch:
        def __init__(self, settings):
            assert settings.group == "g"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def look(self):
            return STATUS

    monkeypatch.setattr(group_status, "GroupWatch", Watch)
    return config


def shown(*arguments):
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_a_status_is_what_the_command_shows(group):
    found = kgs.status(group)
    assert shown("status") == (0, found.to_dict())
    assert (found.consumers, found.lag, found.is_converged) == (ROWS, 7, False)
    frame = found.to_frame()
    assert frame["load"].to_list()[0] == 40.0
    assert frame["state"].to_dict() == {1: "reading", 2: "is to be started"}
    assert frame["load"].isna().to_dict() == {1: False, 2: True}, "unknown is not zero"
    assert "g: controller heard, not converged" in found._repr_html_()


def test_an_audit_is_what_the_command_shows(config, monkeypatch):
    stored = StoredPositions(TopicId("x"), 0, 0, 10, (OffsetRange(3, 5),))
    lost = Finding(Fault.LOST, 1, (OffsetRange(7, 8),), "in the log")
    table = TableAudit("t", "bronze/t", "one_to_one", 7, (PartitionAudit(stored, 7, 0, (lost,), 5),), ("a note",))
    asked = []

    def audit_lake(settings, **given):
        given.pop("progress")
        asked.append((settings.group, given))
        return LakeAudit((table,))

    monkeypatch.setattr("kgs_core.lake.audit.audit.audit_lake", audit_lake)
    found = kgs.audit(config, log=False, topics=["t"])
    assert shown("audit", "--no-log", "--topic", "t") == (1, found.to_dict())
    assert asked == [("g", {"with_log": False, "topics": ["t"]}), ("g", {"with_log": False, "topics": ("t",)})]
    assert not found.ok
    row = found.to_frame().loc[("bronze/t", 0)]
    assert (row["lost"], row["deleted_unread"], row["unread"], row["rows"], row["gaps"]) == (1, 0, 5, 7, [[3, 5]])
    assert row["findings"] == ["lost 1: 7 (in the log)"]
    assert "wrong: bronze/t" in found._repr_html_()


def test_an_empty_lake_is_audited_for_real(config):
    """No Kafka, no table: nothing is wrong, and nothing is there."""
    found = kgs.audit(config, log=False)
    assert (found.ok, [table.table for table in found.tables]) == (True, ["t"])
    assert found.to_frame().empty
    assert shown("audit", "--no-log") == (0, found.to_dict())


@pytest.mark.parametrize("look", [kgs.status, kgs.audit])
def test_a_configuration_that_is_not_there_is_named(look, config):
    with pytest.raises(ConfigError, match=re.escape("other.yaml: no such file: `kgs init` makes one")):
        look("other.yaml")
