"""What a round asks Kafka is what the bench takes the time of."""

from types import SimpleNamespace

import pytest

from bench.ingest_worker import TimedAdmin
from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange, TopicId


@pytest.fixture
def admin(monkeypatch):
    """One whose cluster has topic t, with ten records."""
    monkeypatch.setattr(KafkaAdmin, "each_topic_id", lambda _, topics: dict.fromkeys(topics, TopicId("other")))
    monkeypatch.setattr(KafkaAdmin, "each_offset", lambda _, tps, *__, **___: dict.fromkeys(tps, 10))
    return TimedAdmin({"bootstrap.servers": "127.0.0.1:9"})


def test_every_question_of_a_round_has_its_time(admin):
    """They were all 0: rounds ask one subject at a time since, and the bench timed questions that nobody asks."""
    progress = TopicProgress("t", TopicId("id"), uses_dataframe=True, owned=frozenset({0}), at=TablePositions({0: 0}))
    state = SimpleNamespace(progress=progress, job=lambda _: None, is_at_work=False)
    batch = TopicBatch("t", TopicId("id"), {0: OffsetRange(0, 10)}, (), records=10)
    reads = SimpleNamespace(read=lambda question, jobs: ReadResult(batches=[batch]), end_task=lambda: None)
    ingest = Ingest({"t": state}, ConsumerSettings(batch_bytes=1000, wait_time_s=0.0), reads, admin, None)
    ingest.round()
    ingest.close()
    assert set(admin.seconds) == {"ends", "topic_ids"}
    assert 0 in state.progress.stops, "the answers were used"
