"""What came of dead letters that were redriven."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class RedriveResult:
    """What came of the dead letters of one table that were chosen.

    Attributes:
        letters: that were chosen.
        passed: letters whose records are now rows, or would be; `rows` are those rows.
        done: whose records were rows already.
        unsettled: that were not looked at: their records will be read again, or lie in an accepted gap; or no rule
            fits their topic any more.
        dropped: that can be parsed, but the transform leaves them out.
        failed: code -> how many still cannot be parsed.
        examples: code -> the reason of one of them, with its topic partition and offset.
    """

    table: str
    letters: int = 0
    passed: int = 0
    rows: int = 0
    done: int = 0
    unsettled: int = 0
    dropped: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, found: "RedriveResult") -> None:
        """Count what came of other letters of the same table, too."""
        for name in ("passed", "rows", "done", "unsettled", "dropped"):
            setattr(self, name, getattr(self, name) + getattr(found, name))
        self.failed += found.failed
        self.examples = found.examples | self.examples
