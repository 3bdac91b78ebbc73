"""What people and timers run beside the consumers: the functions behind the commands of `kgs`."""

import json
from itertools import count
from pathlib import Path

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, KgsError
from kgs_core.ingest.replay import redrive
from kgs_core.lake.audit import audit
from kgs_core.lake.derived.materialize import materialize_lake
from kgs_core.lake.handover import adoption
from kgs_core.lake.letters.erase import Eraser
from kgs_core.lake.rule import LakeAudit
from kgs_core.lake.topics import maintenance, recovery
from tests.combinations.case import NEW, OLD, Rule
from tests.combinations.rules import rules_of
from tests.combinations.values import SECRET, key_of

_NUMBERS = count()


class Operator:
    """Has kgs.yaml, and runs commands by it.

    Attributes:
        editions: of the rules that there have been.
        has_redriven: whether dead letters may have become rows.
        erased: keys of records that were, or may be, erased.
    """

    def __init__(self, rule: Rule, root: Path) -> None:
        self._rule, self._root = rule, root
        self._group, self._heir_of = 1, 0
        self.edition, self.editions = OLD, {OLD}
        self.has_redriven = False
        self.erased: set[str] = set()

    def settings(self) -> Settings:
        """Of a process that starts now; each has its own connection to the registry."""
        return Settings.model_validate(
            {
                "group": f"g{self._group}",
                "kafka": {"bootstrap_servers": "memory:1"},
                "lake": {"root": str(self._root), "checkpoint_interval": 5, "mask_secret": SECRET},
                "consumer": {"wait_time_s": 0.0},
                "registry": {"url": f"http://registry:1/{next(_NUMBERS)}"},
                "topics": rules_of(self._rule, self.edition),
            }
        )

    def change(self) -> None:
        self.edition = NEW
        self.editions.add(NEW)

    def redrive(self) -> None:
        self.has_redriven = True
        redrive.Redrive(self.settings(), "t").run()

    def problems_of_redrive(self, *, may_be_refused: bool) -> list[str]:
        """The same; why it was refused, if it was."""
        try:
            self.redrive()
        except KgsError as e:
            return [] if may_be_refused else [f"redrive: {e}"]
        return []

    def erase(self, key: str) -> None:
        self.erased.add(key)
        Eraser(self.settings(), "t", keys=[key_of(self._rule, key).decode()]).run()

    def materialize(self) -> list[str]:
        """`kgs materialize`; its problems."""
        found: list[str] = []
        if self._rule.newest:
            materialize_lake(self.settings(), lambda done: found.append(done.problem))
        return [problem for problem in found if problem]

    def maintain(self, *, later: bool) -> None:
        """`kgs maintain`; with `later` what a later one would do to the log: deltalake has bounds on time."""
        maintenance.maintain_lake(self.settings(), done=lambda _: None)
        for last in self._root.glob("*/_delta_log/_last_checkpoint") if later else ():
            version = json.loads(last.read_text())["version"]
            for entry in last.parent.glob("*.json"):
                if int(entry.stem) < version:
                    entry.unlink()

    def accept(self, topic: str) -> None:
        recovery.Acceptance(self.settings()).accept_topic(topic)

    def adopt(self) -> None:
        """Give the group another name, and `kgs adopt`; where that was killed, go on with it."""
        if not self._heir_of:
            self._heir_of, self._group = self._group, self._group + 1
        try:
            adopting = adoption.GroupAdoption(self.settings(), f"g{self._heir_of}")
            pending = adopting.pending(())
        except ConfigError:  # there is nothing yet
            self._group, self._heir_of = self._heir_of, 0
            raise
        for table in pending:
            adopting.carry_out(table)
        self._heir_of = 0

    def end_adoption(self) -> None:
        """Go on with one that was killed."""
        if self._heir_of:
            self.adopt()

    def audit(self) -> LakeAudit:
        return audit.audit_lake(self.settings(), with_log=False)
