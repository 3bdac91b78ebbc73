"""Status of a group that is made up."""

from kgs_core.config import PackingSettings
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.reporting.consumer_rows import ExternalFacts
from kgs_core.reporting.sentences import sentences
from kgs_core.reporting.status import GroupStatus, observed_status
from tests.configuration import settings_of


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


def sentences_of(state, now):
    """What people are told of a group that is seen so, with the settings that its controller has."""
    of_controller = {"packing": state.options.packing, "membership": state.options.membership}
    settings = settings_of().model_copy(update=of_controller)
    return sentences(observed_status(settings, state, now), state, now)
