"""A controller on this machine: its topics, its monitor, its fleet, from the first connection to the last."""

import logging
from contextlib import ExitStack

from kgs_core.config import Settings
from kgs_core.fleet.controller_fleet import ControllerFleet
from kgs_core.group.topics.connections import GroupConnections
from kgs_core.monitor.kafka.measurement_thread import MeasurementThread
from kgs_core.runtime.controller_loop import ControlLoop, ControlPorts, controller_options
from kgs_core.system.patience import try_until
from kgs_core.system.shutdown import StopFlag

_log = logging.getLogger(__name__)


def look_after(settings: Settings, fleet: ControllerFleet, stop: StopFlag) -> None:
    """Control one group until `stop`; consumers continue. Waits while Kafka does not answer.

    Raises:
        FencedError: a newer controller has taken over. Final.
        KgsError: it cannot begin, or a person must act.
    """
    with ExitStack() as held:
        ports = try_until(lambda: _connect(settings, fleet, held), stop, _log.warning)
        if ports is not None:
            _log.info("controller group=%s", settings.group)
            ControlLoop(settings.group, controller_options(settings), ports).run(stop)
    _log.info("controller ended group=%s", settings.group)


def _connect(settings: Settings, fleet: ControllerFleet, held: ExitStack) -> ControlPorts:
    """Ports of the controller; `held` ends the connections, and a failed attempt has ended its own."""
    with ExitStack() as opened:
        reader, writer = opened.enter_context(GroupConnections(settings)).controller()
        measurements = opened.enter_context(MeasurementThread(settings))
        held.push(opened.pop_all())
    return ControlPorts(reader, writer, fleet, measurements)
