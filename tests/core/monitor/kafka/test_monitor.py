"""A measurement for who needs just one: said at once, and refused at once where there is nothing to measure."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.errors import PermanentError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.monitor.kafka import monitor as module
from kgs_core.monitor.kafka.monitor import measure
from tests.configuration import settings_of, text_of

TOPICS = "[{topic: t}, {pattern: 'order.*'}]"


class Nothing:
    """A monitor of a cluster without any topic that the settings name."""

    is_full, filled_s = False, 1.0

    def __init__(self, *_, **__):
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def rebuild(self):
        return 0

    def tick(self):
        self.asked += 1
        assert self.asked == 1, "nobody waits for a window of nothing"
        return SimpleNamespace(speeds={}, reading=SimpleNamespace(partitions={}))


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (["app.logs", "kgs.g.monitor.writeSpeed", "shop.orders"], "the topics are app.logs, shop.orders"),
        ([f"t{n}" for n in range(9)], "the topics are t0, t1, t2, t3, t4 and 4 more"),
        ([], "it has no topics"),
    ],
)
def test_topics_that_match_nothing_are_refused_at_once_with_the_names_that_are_there(monkeypatch, names, there):
    monkeypatch.setattr(module, "Monitor", Nothing)
    monkeypatch.setattr(KafkaAdmin, "list_topics", lambda _: names)
    with pytest.raises(PermanentError) as caught:
        measure(settings_of(topics=TOPICS))
    assert str(caught.value) == (
        f"Kafka 127.0.0.1:9: no topic matches 't' or 'order.*': {there}: create the topics, or fix `topics`"
    )


class Filling(Nothing):
    """A monitor whose window is full at its third reading."""

    @property
    def is_full(self):
        return self.asked >= 3

    def tick(self):
        self.asked += 1
        return SimpleNamespace(speeds={"t": 1}, reading=SimpleNamespace(partitions={}))


def test_a_command_that_measures_says_so_at_once_also_in_a_pipe(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "Monitor", Filling)
    file = tmp_path / "kgs.yaml"
    file.write_text(text_of(topics=TOPICS))
    result = CliRunner().invoke(cli, ["plan", "--config", str(file)])
    assert result.stderr.splitlines()[0] == "measuring write speeds: 29 s"
