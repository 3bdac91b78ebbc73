"""dagster-k8s's launcher for consumers that run for days: a cluster that does not answer is not taken for their death.

Run monitoring marks a run as failed when the cluster does not say that its Job is well. So a minute without the API
server would fail every run at once, and their pods would read on as runs that nobody knows of.
"""

from typing import TYPE_CHECKING

from kgs_core.extras import require
from kgs_dagster.pods import api_of, pods_are_gone

require("k8s", "run launcher PodRunLauncher")
from dagster_k8s import K8sRunLauncher  # noqa: E402 - its absence is named first

if TYPE_CHECKING:
    import dagster as dg
    from dagster._core.launcher.base import CheckRunHealthResult


class PodRunLauncher(K8sRunLauncher):
    """K8sRunLauncher, by whom a run has lost its pod only when Job and pods say so."""

    def check_run_worker_health(self, run: "dg.DagsterRun") -> "CheckRunHealthResult":
        """As K8sRunLauncher's; what it does not know counts as running, until the pod is known to be gone."""
        found: CheckRunHealthResult = super().check_run_worker_health(run)
        kinds = type(found.status)
        if found.status is not kinds.UNKNOWN or pods_are_gone(api_of(self), run.run_id):
            return found
        return found._replace(status=kinds.RUNNING)
