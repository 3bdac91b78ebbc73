"""Job that parses dead letters again: what `kgs redrive` does, started by hand."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from kgs_core.config import Settings
from kgs_dagster.jobs.shape import op_job
from kgs_dagster.launch import TABLE
from kgs_dagster.metadata import table
from kgs_dagster.run_process import DAY_S, claim_run, failures_named
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.ingest.replay.redrive_result import RedriveResult


class RedriveConfig(dg.Config):
    """Which dead letters."""

    table: str = Field(description="The rows' table, by its path in the lake.")
    code: list[str] = Field(default=[], description="Only letters with one of these error codes.")
    partition: list[int] = Field(default=[], description="Only records of these partitions.")
    since: str | None = Field(default=None, description="Only records written since then, e.g. 2026-11-15T08:00.")
    until: str | None = Field(default=None, description="Only records written before then.")
    dry_run: bool = Field(default=False, description="Only count.")


RedriveTable = Callable[[Settings, RedriveConfig], "RedriveResult"]


def redrive_table(settings: Settings, config: RedriveConfig) -> "RedriveResult":
    """The redrive of `kgs redrive`."""
    from kgs_core.ingest.replay.redrive import Redrive
    from kgs_core.lake.letters.letter_filter import letter_filter

    chosen = letter_filter(config.code, config.partition, config.since, config.until)
    return Redrive(settings, config.table).run(chosen, dry_run=config.dry_run)


def redrive_job(group: GroupConfig, redrive: RedriveTable = redrive_table) -> dg.JobDefinition:
    """Dead letters of one table into rows; run again or beside another run, it doubles nothing."""

    @dg.op(name=f"redrive_table{group.suffix}", out=dg.Out(dg.Nothing))
    def redrive_letters(context: dg.OpExecutionContext, config: RedriveConfig) -> None:
        claim_run(context.instance, context.run_id, {TABLE: config.table})
        with failures_named():
            found = redrive(group.settings, config)
        context.add_output_metadata(_metadata(found))

    about = (
        "Parses the dead letters of a table again by today's rule: what passes becomes rows, once. Consumers keep "
        "running."
    )
    return op_job(group, "redrive_job", "redrive", redrive_letters, about, DAY_S)


def _metadata(found: "RedriveResult") -> dict[str, int | dg.MetadataValue]:
    lines = [
        {"code": code, "letters": count, "example": found.examples[code]} for code, count in found.failed.most_common()
    ]
    return {
        "letters": found.letters,
        "passed": found.passed,
        "rows": found.rows,
        "done_before": found.done,
        "dropped": found.dropped,
        "unsettled": found.unsettled,
        "failed": found.failed.total(),
        "reasons": table(lines, {"code": "string", "letters": "int", "example": "string"}),
    }
