"""What can happen, by subject."""

from collections.abc import Sequence

from tests.system.chaos.faults import brokers, consumers, group, lake, network
from tests.system.chaos.nemesis import Fault
from tests.system.chaos.stage import Stage

ALL: tuple[Fault, ...] = (*consumers.FAULTS, *group.FAULTS, *brokers.FAULTS, *lake.FAULTS, *network.FAULTS)


def meant(names: Sequence[str]) -> list[Fault]:
    """Those of these names and subjects; all of them where none is named.

    Raises:
        ValueError: a name that means nothing.
    """
    known = {name for fault in ALL for name in (fault.name, fault.subject)}
    if unknown := sorted(set(names) - known):
        raise ValueError(f"no such fault: {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return [fault for fault in ALL if not names or {fault.name, fault.subject} & set(names)]


def chosen(stage: Stage, names: Sequence[str]) -> list[Fault]:
    """What `meant` says, of it what can happen here.

    Raises:
        ValueError: as there, or none can happen here.
    """
    found = [fault for fault in meant(names) if fault.fits(stage)]
    if not found:
        raise ValueError(f"none of {', '.join(names)} can happen with {stage.options}")
    return found
