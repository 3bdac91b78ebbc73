"""Values for Dagster's chart: the instance that they make is ours, and what they name is there."""

import re

import yaml

from tests.k8s.kustomizations import K8S, build, named

VALUES = yaml.safe_load((K8S / "helm/values.yaml").read_text())
INSTANCE = yaml.safe_load((K8S / "base/dagster.yaml").read_text())
BESIDE = build(K8S / "helm")
DAEMON = VALUES["dagsterDaemon"]


def snake(tree):
    """The same with the keys as Dagster has them; the chart writes them so."""
    if isinstance(tree, list):
        return [snake(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): snake(value) for key, value in tree.items()}


def test_a_run_is_launched_as_by_the_base():
    theirs = VALUES["runLauncher"]["config"]["customRunLauncher"]
    ours = INSTANCE["run_launcher"]
    assert (theirs["module"], theirs["class"]) == (ours["module"], ours["class"])
    of_the_chart = {"instance_config_map": "dagster-instance"}
    assert theirs["config"] == {**ours["config"], **of_the_chart}
    assert VALUES["global"]["dagsterHome"] == ours["config"]["dagster_home"]


def test_the_instance_is_that_of_the_base():
    assert snake(DAEMON["runMonitoring"]) == INSTANCE["run_monitoring"]
    assert snake(DAEMON["sensors"]) == INSTANCE["sensors"]
    assert snake(DAEMON["runCoordinator"]["config"]["queuedRunCoordinator"]) == INSTANCE["run_coordinator"]["config"]
    limits = INSTANCE["concurrency"]["runs"]["tag_concurrency_limits"]
    assert VALUES["concurrency"]["runs"]["tagConcurrencyLimits"] == limits  # their values are handed on as they are
    assert VALUES["concurrency"]["runs"]["maxConcurrentRuns"] == INSTANCE["concurrency"]["runs"]["max_concurrent_runs"]
    assert snake(VALUES["concurrency"]["pools"]) == INSTANCE["concurrency"]["pools"]
    days = INSTANCE["retention"]["sensor"]["purge_after_days"]
    assert VALUES["retention"]["sensor"]["purgeAfterDays"].items() >= days.items()
    assert VALUES["telemetry"] == INSTANCE["telemetry"]
    assert VALUES["additionalInstanceConfig"] == {key: INSTANCE[key] for key in ("nux", "local_artifact_storage")}


def test_what_the_values_name_is_there():
    named(BESIDE, "ServiceAccount", VALUES["global"]["serviceAccountName"])
    (server,) = VALUES["dagsterWebserver"]["workspace"]["servers"]
    service = named(BESIDE, "Service", server["host"])
    assert [port["port"] for port in service["spec"]["ports"]] == [server["port"]]
    launcher = VALUES["runLauncher"]["config"]["customRunLauncher"]["config"]
    for name in launcher["env_config_maps"]:
        named(BESIDE, "ConfigMap", name)
    allowed = named(BESIDE, "NetworkPolicy", "code-is-asked-by-dagster")["spec"]["ingress"][0]["from"][0]
    assert {DAEMON["labels"]["app"], VALUES["dagsterWebserver"]["labels"]["app"]} == set(
        allowed["podSelector"]["matchExpressions"][0]["values"]
    )


def test_one_account_for_all_may_do_what_each_of_them_may():
    """The chart has no account for each: the daemon's has the rights of webserver and code location as well."""
    bindings = [one for one in BESIDE if one["kind"] == "RoleBinding"]

    def rights(account):
        roles = [one["roleRef"]["name"] for one in bindings if account in {each["name"] for each in one["subjects"]}]
        rules = [rule for role in roles for rule in named(BESIDE, "Role", role)["rules"]]
        return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}

    assert rights("kgs-daemon") >= rights("kgs-webserver") | rights("kgs-code")


def test_its_pods_are_what_pod_security_calls_restricted():
    daemon = named(build(K8S / "base"), "Deployment", "kgs-daemon")["spec"]["template"]["spec"]
    for part in (DAEMON, VALUES["dagsterWebserver"]):
        assert part["podSecurityContext"] == daemon["securityContext"]
        assert part["securityContext"] == daemon["containers"][0]["securityContext"]
