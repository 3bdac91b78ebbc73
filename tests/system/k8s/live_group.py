"""A group in a namespace of the cluster, under load: what it says of itself, and what its lake holds in the end."""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.unread import commits_of
from tests.system.k8s.cluster import Kubectl, Object
from tests.system.ledger import Row, lost_and_doubled, rows_of
from tests.waiting import wait_until

TOPICS = {"Odd_Topic.--A": 6, "_odd.topic_b": 2}
PARTITIONS = sum(TOPICS.values())
CALM, USUAL, BUSY, MOST = 20_000, 60_000, 90_000, 125_000
"""Bytes/s that one, two, three and four consumers read."""
LIFE_S = 150.0
_FRESH_S = 15.0
_FOLDER = Path(__file__).parent
_LAKE = "/data/lake/Odd_Lake"
Status = dict[str, Any]


class LiveGroup(threading.Thread):
    """Looked at all the time, by `kgs status --watch` in the cluster.

    Attributes:
        longest_unread_s: partition -> for how long at a stretch nobody owned it, since `forget`.
    """

    def __init__(self, kubectl: Kubectl, controller: str) -> None:
        """Looks from now on.

        Args:
            kubectl: its namespace.
            controller: whose log explains what happens, as `deployment/NAME`.
        """
        super().__init__(name="live-group", daemon=True)
        self.kubectl = kubectl
        self.longest_unread_s: dict[str, float] = {}
        self._controller = controller
        self._newest: tuple[float, Status] = (0.0, {})
        self._unread_since: dict[str, float] = {}
        self._stream: subprocess.Popen[str] | None = None
        self._closed = threading.Event()
        self.start()

    def run(self) -> None:
        """Where the API server or the kubelet is away, the stream ends, and is begun anew."""
        command = self.kubectl.command(
            "exec", "load", "--", "kgs", "--log-level", "error", "status", "--watch", "--json"
        )
        while not self._closed.wait(1):
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as stream:
                self._stream = stream
                assert stream.stdout is not None
                for line in stream.stdout:
                    self._note(json.loads(line), time.monotonic())
            self._unread_since.clear()

    def _note(self, found: Status, now: float) -> None:
        self._newest = (now, found)
        wanted, owned = _partitions(found["target"] or {}), _partitions(found["current"])
        self._unread_since = {tp: self._unread_since.get(tp, now) for tp in wanted - owned}
        for tp, since in self._unread_since.items():
            self.longest_unread_s[tp] = max(self.longest_unread_s.get(tp, 0.0), now - since)

    def forget(self) -> None:
        """What was unread until now."""
        self.longest_unread_s = {}
        self._unread_since = {}

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        if self._stream is not None:
            self._stream.kill()
        self.join(10)

    def status(self) -> Status | None:
        """The newest look; None where it is old."""
        at, found = self._newest
        return found if time.monotonic() - at < _FRESH_S else None

    def bear(self, bytes_per_s: int) -> None:
        """Another load from now on."""
        self.kubectl.exec(
            "load", "sh", "-c", f"echo {bytes_per_s} >/tmp/load/rate.new; mv /tmp/load/rate.new /tmp/load/rate"
        )

    def wait(self, condition: Callable[[Status], object], message: str, timeout_s: float = LIFE_S) -> Status:
        """The first look that `condition` holds for."""

        def attempt() -> Status | None:
            found = self.status()
            return found if found is not None and condition(found) else None

        try:
            found = wait_until(attempt, timeout_s, message)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.explain()}") from None
        assert found is not None
        return found

    def wait_at_rest(self, readers: int, without: Collection[str] = (), spares: int = 1) -> Status:
        """Until so many consumers read everything, with a spare, and none of `without` is among them."""

        def at_rest(found: Status) -> bool:
            rows = found["consumers"]
            return (
                found["converged"]
                and found["controller"] == "heard"
                and len(_partitions(found["current"])) == PARTITIONS
                and len(readers_of(found)) == readers == len(rows) - spares
                and all(row["incarnation"] and not row["stopped"] for row in rows)
                and not {row["incarnation"] for row in rows} & set(without)
                and found["lag"] is not None
                and found["lag"] < 20 * USUAL / 200  # nobody stands still in secret
            )

        return self.wait(at_rest, f"{readers} consumers read everything, {spares} spare, without {sorted(without)}")

    def as_usual(self) -> Status:
        """At rest under the usual load, which two consumers read."""
        self.bear(USUAL)
        return self.wait_at_rest(2)

    def pod_of(self, consumer: int) -> Object:
        """The one pod of this consumer that lives."""
        (pod,) = self.kubectl.pods(f"kgs/role=consumer,kgs/consumer={consumer}")
        return pod

    def name_of(self, consumer: int) -> str:
        """Of its pod."""
        name: str = self.pod_of(consumer)["metadata"]["name"]
        return name

    def explain(self) -> str:
        """What is the matter, for a test that failed."""
        pods = self.kubectl.attempt("get", "pods,jobs", "-o", "wide").stdout
        log = self.kubectl.attempt("logs", self._controller, "--tail=40").stdout
        return f"{json.dumps(self._newest[1], indent=1)}\n{pods}\n{log}"

    def commits(self, folder: Path) -> dict[str, list[float]]:
        """Partition -> when the tables' commits moved its position, seconds since 1970."""
        self._fetch_lake(folder)
        return {
            f"{topic}:{partition}": [advance.at_s for advance in advances]
            for topic in TOPICS
            for partition, advances in commits_of(folder / topic).items()
        }

    def assert_exact(self, folder: Path) -> int:
        """No more load; every acknowledged record is a row, once, by a reader of our own and by `kgs audit`.

        Returns:
            How many there are.
        """
        self.kubectl.exec("load", "touch", "/tmp/load/stop")
        last = list(TOPICS)[-1]
        wait_until(
            lambda: f"{last}.json.gz" in self.kubectl.exec("load", "ls", "/tmp/load"),
            60,
            "the load has noted what was acknowledged",
        )
        self.wait(lambda found: found["lag"] == 0, "everything is read")
        self.kubectl.exec("load", "kgs", "audit", "--log")
        self._fetch_lake(folder)
        count = 0
        for topic, partitions in TOPICS.items():
            noted = folder / "noted.json.gz"
            self._fetch(noted, "load", "cat", f"/tmp/load/{topic}.json.gz")
            with gzip.open(noted, "rt") as file:
                acknowledged: set[Row] = {(p, offset, value.encode()) for p, offset, value in json.load(file)}
            found = lost_and_doubled(acknowledged, rows_of(folder / topic))
            assert found == ([], [], []), (topic, [each[:3] for each in found])
            assert {p for p, _, _ in acknowledged} == set(range(partitions))
            count += len(acknowledged)
        return count

    def _fetch_lake(self, folder: Path) -> None:
        archive = folder / "lake.tar"
        # Exit status 1: a folder changed meanwhile. A file never does
        script = f"tar --ignore-failed-read -cC {_LAKE} . || [ $? = 1 ]"
        self._fetch(archive, "deployment/store", "sh", "-c", script)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")

    def _fetch(self, to: Path, pod: str, *command: str) -> None:
        """Reads again what kubectl has lost: of a stream that it does not know yet it discards all, with status 1."""
        asked = self.kubectl.command("exec", pod, "--", *command)
        for is_last in (False, False, True):
            with to.open("wb") as file:
                if not subprocess.run(asked, stdout=file, check=is_last, timeout=120).returncode:
                    return


def readers_of(found: Status) -> list[int]:
    """Consumers that own a partition."""
    return sorted(row["id"] for row in found["consumers"] if row["partitions"])


def spares_of(found: Status) -> list[int]:
    """Those that own none."""
    return sorted(row["id"] for row in found["consumers"] if not row["partitions"])


def incarnations(found: Status, *consumers: int) -> list[str]:
    """Of these consumers; of all, where none is named."""
    return [row["incarnation"] for row in found["consumers"] if not consumers or row["id"] in consumers]


@contextmanager
def outage_told(
    group: LiveGroup, found: Status, consumer: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """The consumer dies in the block; others take over, and the longest time without a commit until then is told."""
    (row,) = [row for row in found["consumers"] if row["id"] == consumer]
    held, began = set(row["partitions"]), time.time()  # noqa: TID251 - compared with the clock of the tables
    yield

    def is_taken_over(look: Status) -> bool:
        others = [each for each in look["consumers"] if each["incarnation"] not in (None, row["incarnation"])]
        return held <= {tp for each in others for tp in each["partitions"]}

    group.wait(is_taken_over, f"others read {held}")
    taken = time.time()  # noqa: TID251 - as above

    def gaps() -> list[float] | None:
        commits = group.commits(folder)
        if any(max(commits[tp]) <= taken for tp in held):
            return None
        return [after - before for tp in held for before, after in pairwise(sorted(commits[tp])) if after > began]

    longest = max(wait_until(gaps, LIFE_S, f"{held} are read again"))
    with capsys.disabled():
        print(f"\na pod is killed: its {len(held)} partitions without a commit for up to {longest:.1f} s", end="")


def _partitions(assignment: dict[str, dict[str, int]]) -> set[str]:
    return {f"{topic}:{partition}" for topic, found in assignment.items() for partition in found}


@contextmanager
def group_in_cluster(overlay: str, *deployments: str) -> Iterator[LiveGroup]:
    """One under load in a namespace of its own, which is gone afterwards."""
    assert os.environ.get("KUBECONFIG"), "no cluster: `make test-k8s` makes one, or set KUBECONFIG"
    kubectl = Kubectl(f"kgs-test-{overlay}")
    found = kubectl("get", "namespace", kubectl.namespace, "--ignore-not-found", "-o", "name")
    assert not found, (
        f"the namespace {kubectl.namespace} is there already: kubectl delete namespace {kubectl.namespace}"
    )
    try:
        kubectl("create", "namespace", kubectl.namespace)
        files = [f"--from-file={file}" for file in (_FOLDER / "group/load.py", _FOLDER.parent / "ledger.py")]
        kubectl("create", "configmap", "tests", *files)
        kubectl("apply", "-k", str(_FOLDER / overlay))
        kubectl.rollout("kafka", "store", *deployments)
        kubectl("wait", "--for=condition=Ready", "pod/load", "--timeout=120s")
        group = LiveGroup(kubectl, f"deployment/{deployments[0]}")
        try:
            yield group
        finally:
            group.close()
    finally:
        sys.stdout.write(kubectl.attempt("get", "pods,jobs").stdout)
        kubectl("delete", "job", "--all", "--wait=false")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
        kubectl("delete", "pod", "--all", "--grace-period=0", "--force")
        kubectl("wait", "--for=delete", f"namespace/{kubectl.namespace}", "--timeout=300s", timeout_s=320)
