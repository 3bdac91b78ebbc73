"""Events and commands: the two sides of the controller's `step`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgs_core.group.protocol import Incarnation, MemberAssignment, Message, Received, Target, Tombstone
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load
from kgs_core.ports import Run


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """Records of the topics; the first after a Fence is the whole of them, up to the ends. Empty ones count, too.

    An empty one says that somebody listened and nothing came: without it, silence could not be noticed.

    Attributes:
        report_age_s: of the first, how long ago the newest report in it came at least: else that counts as come now.
    """

    messages: Sequence[Received[Message]] = ()
    report_age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Written:
    """The Write is committed.

    Attributes:
        messages: each with its offset, in the order Target, assignments, tombstones.
    """

    messages: Sequence[Received[Message]]


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A Fence, ReadToEnd or Write came to nothing that is known (`TransientError`). The commands after it were dropped.

    Give it to `step` when the error's `retry_after_s` is over.
    """

    why: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """A Fence or Write was refused, because a newer controller has the right to write (`FencedError`)."""


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """Runs that the fleet knows now.

    Attributes:
        dead: of the incarnations that have reported, those whose process `Fleet.is_dead` says is gone for certain.
    """

    runs: Sequence[Run]
    dead: frozenset[Incarnation] = frozenset()


@dataclass(frozen=True, slots=True)
class StartFailed:
    """A Launch was refused: there is no run of it."""

    consumer: ConsumerId
    why: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time goes by: about once a second."""


Event = RecordsRead | Written | WriteFailed | Fenced | FleetSeen | Load | StartFailed | Tick


@dataclass(frozen=True, slots=True)
class Fence:
    """Take the right to write (`ControllerWriter.fence`)."""


@dataclass(frozen=True, slots=True)
class ReadToEnd:
    """Read all topics to their ends (`GroupTopicReader.read_to_end`); answered by RecordsRead or WriteFailed."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write all of it or nothing (`ControllerWriter.write`); answered by Written, WriteFailed or Fenced.

    In one transaction: a suspect's loss and another's gain must not come apart.

    Attributes:
        tombstones: of every confirmed death that no tombstone records, also of those never assigned anything: a later
            controller that reads their reports would take them for new ones.
    """

    target: Target | None = None
    assignments: tuple[MemberAssignment, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is to be written."""
        return self != Write()

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of it, in the order in which it is written."""
        first = () if self.target is None else (self.target,)
        return (*first, *self.assignments, *self.tombstones)


@dataclass(frozen=True, slots=True)
class Launch:
    """Start one process for this consumer (`Fleet.start`); answered by StartFailed, or by nothing."""

    consumer: ConsumerId
    consumer_class: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask a run to drain and end (`Fleet.stop`)."""

    handle: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the log; `fields` are plain values."""

    text: str
    fields: Mapping[str, object] = field(default_factory=dict)


Command = Fence | ReadToEnd | Write | Launch | Stop | Note
