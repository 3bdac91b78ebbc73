"""`kgs adopt --from-group`: who still runs under the old name is named before anything changes hands."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError
from kgs_core.lake.handover import adoption
from kgs_core.lake.handover.adoption import Adopted
from kgs_core.model import ConsumerId
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.runtime import group_status

ROWS = tuple(ConsumerRow(ConsumerId(n), None, "", report_age_s=age) for n, age in ((1, 0.5), (2, None), (3, 900.0)))


class Watch:
    """The old group, with one consumer that reports and no controller."""

    heard = False

    def __init__(self, settings):
        assert settings.group == "old"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def look(self, *, with_lake):
        assert not with_lake
        return SimpleNamespace(consumers=ROWS, controller_is_heard=self.heard)


class Away(Watch):
    def __init__(self, settings):
        raise PermanentError("Kafka b:9: no topic kgs.old.operator.metadata")


class Controlled(Watch):
    heard = True


@pytest.mark.parametrize(
    ("watch", "said"),
    [
        (Watch, "group old still runs (consumers 1): end it first, by `kgs stop --wait`\n"),
        (Controlled, "group old still runs (consumers 1, its controller): end it first, by `kgs stop --wait`\n"),
        (Away, "whether group old still runs is not known: Kafka b:9: no topic kgs.old.operator.metadata\n"),
    ],
)
def test_a_dry_run_says_who_still_runs_under_the_old_name(monkeypatch, configured, watch, said):
    old = SimpleNamespace(pending=lambda _: [Adopted("t", ("t",), 1)])
    monkeypatch.setattr(adoption, "GroupAdoption", lambda *_: old)
    monkeypatch.setattr(group_status, "GroupWatch", watch)
    monkeypatch.setattr(group_status, "has_topics", lambda _: True)
    result = configured(group="new")("adopt", "--from-group", "old")
    assert (result.exit_code, result.stderr) == (0, said)
