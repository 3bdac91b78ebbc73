"""The group's topics, connected to when they are needed: as an observer, or as the one who has the right to write."""

from contextlib import ExitStack

from kgs_core.config import Settings
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.hanging_transactions import HangingTransactions
from kgs_core.group.topics.topic_reader import READ_TIMEOUT_S, KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.kafka.admin import admin_of
from kgs_core.system.closing import Closing


class GroupConnections(Closing):
    """Connections to the topics of one group; a context manager that ends them. For one thread."""

    def __init__(self, settings: Settings, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        """`read_timeout_s`: how long to wait for the end of the topics, which an open transaction may hold back."""
        self._settings = settings
        self._read_timeout_s = read_timeout_s
        self._held = ExitStack()

    def reader(self) -> KafkaGroupTopicReader | None:
        """For who only reads; None: the topics are not there yet. Makes nothing.

        Raises:
            PortError, ConfigError: Kafka does not answer, or refuses; topics that are not as they must be.
        """
        admin = admin_of(self._settings)
        names = [each.of(self._settings.group) for each in GroupTopic]
        if len(admin.describe(names)) < len(names):
            return None
        return self._topic_reader(GroupTopics(self._settings, admin))

    def controller(self) -> tuple[KafkaGroupTopicReader, KafkaControllerWriter]:
        """For who writes; makes the topics that are missing.

        Raises:
            PortError, ConfigError: see `reader`.
        """
        admin = admin_of(self._settings)
        create_topics(self._settings, admin)
        topics = GroupTopics(self._settings, admin)
        writer = KafkaControllerWriter(topics)
        self._held.callback(writer.close)
        return self._topic_reader(topics, HangingTransactions(topics)), writer

    def close(self) -> None:
        """End the connections."""
        self._held.close()

    def _topic_reader(self, topics: GroupTopics, hanging: HangingTransactions | None = None) -> KafkaGroupTopicReader:
        reader = KafkaGroupTopicReader(topics, self._read_timeout_s, hanging)
        self._held.callback(reader.close)
        return reader
