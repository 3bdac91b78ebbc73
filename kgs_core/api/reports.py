"""`status` and `audit`: what `kgs status` and `kgs audit` show, as values. Both read only."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

from kgs_core.api.configuration import Config, settings_of
from kgs_core.lake.rule import LakeAudit
from kgs_core.lake.rule.completeness import Completeness
from kgs_core.reporting.audit_json import COUNTED, audit_values
from kgs_core.reporting.consumer_rows import CONSUMER_KEYS
from kgs_core.reporting.status import GroupStatus
from kgs_core.reporting.status_json import status_values

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class StatusReport(GroupStatus):
    """The group as it was at one moment: what `kgs status` shows. Attributes are those of `GroupStatus`."""

    @classmethod
    def of(cls, found: GroupStatus) -> "StatusReport":
        """The same as a value of the face."""
        return cls(**{each.name: getattr(found, each.name) for each in fields(found)})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as `kgs status --json` prints them."""
        return status_values(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row per consumer, or per incarnation where one has several; the index is `id`, the number."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["consumers"], columns=list(CONSUMER_KEYS)).set_index("id")

    def _repr_html_(self) -> str:
        heard = "heard" if self.controller_is_heard else "silent"
        headline = f"{self.group}: controller {heard}, {'converged' if self.is_converged else 'not converged'}"
        return f"<p>{escape(headline)}</p>{self.to_frame().to_html(max_rows=20)}"


@dataclass(frozen=True, slots=True)
class AuditReport(LakeAudit):
    """Findings of `kgs audit`. Attributes are those of `LakeAudit`; `ok` says whether nothing is wrong anywhere."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as `kgs audit --json` prints them."""
        return audit_values(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row per partition of each table, of every topic id that it knows; the index is `table`, `partition`."""
        import pandas as pd

        rows = [
            {"table": table["table"], "topic": table["topic"], **partition}
            for table in self.to_dict()["tables"]
            for partition in table["partitions"]
        ]
        columns = ["table", "partition", "topic", "topic_id", "ok", "start", "position", "gaps", "rows", "dead_letters"]
        frame = pd.DataFrame(rows, columns=[*columns, "unread", *(fault.value for fault in COUNTED), "findings"])
        return frame.set_index(["table", "partition"])

    def _repr_html_(self) -> str:
        wrong = [table.table for table in self.tables if not table.ok] + [t.table for t in self.derived if not t.ok]
        headline = f"{len(self.tables)} tables: {'wrong: ' + ', '.join(wrong) if wrong else 'nothing found'}"
        return f"<p>{escape(headline)}</p>{self.to_frame().to_html(max_rows=20)}"


def status(config: Config = "kgs.yaml") -> StatusReport:
    """The group as it is now: who reads what and who shall, loads, lag, what stands still. Changes nothing.

    Args:
        config: of the group.

    Raises:
        ConfigError: a configuration that cannot be.
        PortError: Kafka does not answer, or refuses; there is no such group.
    """
    settings = settings_of(config)
    from kgs_core.runtime.group_status import GroupWatch

    with GroupWatch(settings) as group:
        return StatusReport.of(group.look())


def audit(
    config: Config = "kgs.yaml",
    *,
    log: bool = True,
    values: bool = False,
    topics: Collection[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> AuditReport:
    """Whether every record is in its table once: rows against positions, gaps and Kafka's log. Changes nothing.

    Args:
        config: of the group.
        log: also read the topics, as far as they are still there; without, Kafka need not run, and holes count as lost.
        values: also parse the records that the log still has, and compare rows with what becomes of them.
        topics: only these; None: all that a rule fits.
        progress: is told a topic, offsets of its log read, and offsets to read.

    Raises:
        ConfigError: a configuration or topic that cannot be.
        PortError: Kafka or the lake did not answer. One table that cannot be read is a `problem` of its audit.
    """
    settings = settings_of(config)
    from kgs_core.lake.audit.audit import audit_lake

    found = audit_lake(settings, with_log=log, topics=topics, progress=progress)
    if values:
        from kgs_core.ingest.replay.audit_values import audit_values as with_values

        found = with_values(settings, found, progress)
    return AuditReport(found.tables, found.derived)


def complete(config: Config = "kgs.yaml", tables: Collection[str] = ()) -> tuple[Completeness, ...]:
    """How far tables are complete: every record with a timestamp before `until` is in the table. Changes nothing.

    Args:
        config: of the group.
        tables: only these, by their path in the lake, and how late their rows came (`learnt`); empty: all, without.

    Raises:
        ConfigError: a configuration that cannot be, or a table that no topic fills.
        PortError: Kafka does not say which topics there are.
    """
    settings = settings_of(config)
    from kgs_core.lake.topics.complete import CompleteView

    with CompleteView(settings) as view:
        found = view.wanted(tables)
        return view.with_lateness(found) if tables else found
