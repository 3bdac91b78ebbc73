"""A Dagster instance whose runs are pods of a cluster on loopback, by the launcher that kgs comes with."""

import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import dagster as dg
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin

from kgs_core.model import ConsumerId
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.launch import consumer_run_request
from tests.kubernetes_server import Cluster, api_server, kubeconfig

NAMESPACE = {"name": "KGS_POD_NAMESPACE", "value_from": {"field_ref": {"field_path": "metadata.namespace"}}}
RUN_K8S_CONFIG = {
    "container_config": {"env": [NAMESPACE]},
    "pod_spec_config": {"security_context": {"run_as_user": 10001}},
    "job_spec_config": {"ttl_seconds_after_finished": 300},
}


@contextmanager
def instance_in_cluster(folder):
    """Cluster and instance."""
    cluster = Cluster()
    with api_server(cluster) as address:
        config = {
            "load_incluster_config": False,
            "kubeconfig_file": str(kubeconfig(folder, address)),
            "job_namespace": "kgs",
            "job_image": "kgs:0.2.0",
            "dagster_home": "/opt/dagster",
            "instance_config_map": "dagster-instance",
            "postgres_password_secret": "dagster-postgres",
            "service_account_name": "dagster-run",
            "env_secrets": ["kafka"],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "volume_mounts": [{"name": "tmp", "mountPath": "/tmp"}],
            "run_k8s_config": RUN_K8S_CONFIG,
        }
        launcher = {"module": "kgs_dagster.pod_launcher", "class": "PodRunLauncher", "config": config}
        (folder / "dagster.yaml").write_text(
            yaml.safe_dump({"run_launcher": launcher, "telemetry": {"enabled": False}})
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what libraries deprecate at import is not ours to mend
            with dg.DagsterInstance.from_config(str(folder)) as instance:
                assert instance.run_launcher
                yield cluster, instance


_CODE = JobPythonOrigin(
    "consumer_job", RepositoryPythonOrigin("python", ModuleCodePointer("kgs", "defs"), None, ["dagster"], None)
)


def launched(where, of, consumer=3):
    """Handle of a run of a consumer, whose Job the launcher has made."""
    request = consumer_run_request(of, ConsumerId(consumer), 1, as_pod=True)
    run = where.instance.create_run_for_job(
        consumer_job(of), run_config=request.run_config, tags=request.tags, job_code_origin=_CODE
    )
    where.instance.run_launcher.launch_run(SimpleNamespace(dagster_run=run, workspace=None))
    return run.run_id
