"""Status of a group that is made up."""

from kgs_core.config import PackingSettings
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.reporting.consumer_rows import ExternalFacts
from kgs_core.reporting.status import GroupStatus


def a_status(**changes):
    found = {
        "group": "g",
        "controller_is_heard": True,
        "target": None,
        "current": {},
        "is_converged": False,
        "waiting": {},
        "consumers": (),
        "lag": None,
        "facts": ExternalFacts(),
        "capacity": capacity_of(PackingSettings(), Learnt(), None),
    }
    return GroupStatus(**{**found, **changes})
