"""Words of the tests of consumers in a cluster."""

from kgs_core.fleet.pod_process import PodProcess
from kgs_core.model import ConsumerId
from tests import configuration
from tests.kubernetes_server import JOB_UID

THREE = ConsumerId(3)


def settings_of(group="flights", kubernetes="{image: 'kgs:1'}", broker="127.0.0.1:9", **more):
    kafka = {"bootstrap_servers": broker}
    return configuration.settings_of(
        group=repr(group), kafka=kafka, topics="[{topic: A_b..c}]", kubernetes=kubernetes, **more
    )


def started(fleet, consumer=THREE):
    fleet.start(consumer)
    fleet.turn()
    fleet.turn()
    return only(fleet).handle


def only(fleet, is_over=False):
    (run,) = [run for run in fleet.runs() if run.is_over is is_over]
    return run


def process_of(pod, cluster, namespace="kgs"):
    uid = pod["metadata"]["uid"]
    return PodProcess(pod["metadata"]["name"], namespace, uid, cluster, pod["metadata"]["labels"][JOB_UID]).as_process()
