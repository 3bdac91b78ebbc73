"""A Kubernetes API server on loopback, as far as kgs uses one: Jobs, pods, faults. The test is controllers and kubelet.

It refuses what the real one would refuse, so that a Job that is taken here is one that Kubernetes takes.
"""

import json
import re
import threading
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes_objects import problems_of_job

PATH = re.compile(r"/(?:api/v1|apis/batch/v1)/namespaces/([^/]+)/(jobs|pods)(?:/([^/]+))?(/status|/log)?")
KINDS = {"jobs": "Job", "pods": "Pod"}
VERBS = {"GET": "get", "POST": "create", "DELETE": "delete", "PATCH": "patch"}
JOB_UID = "batch.kubernetes.io/controller-uid"
NEVER_ANSWERS, LOSES_ANSWER = "never answers", "loses the answer"


class Cluster:
    """What the server holds, and how it misbehaves.

    Attributes:
        jobs, pods: name -> object.
        requests: (verb, resource) of all that were answered.
        forbidden: (verb, resource) that the asker has no right to.
        fault: told verb and resource; a status, one of the words above, or None.
        delay_s: before each answer.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.clear()

    def clear(self):
        """Nothing is there, and nothing is wrong."""
        self.jobs, self.pods, self.requests = {}, {}, []
        self.forbidden, self.delay_s = set(), 0.0
        self.fault = lambda verb, resource: None
        self.makes_pods = True

    def answer(self, verb, resource, name, query, body):
        """Status and object."""
        with self.lock:
            if verb == "get" and name is None:
                wanted = query.get("labelSelector", [""])[0]
                found = [each for each in self._of(resource).values() if _fits(wanted, _labels(each))]
                return 200, {"kind": f"{KINDS[resource]}List", "items": found}
            if verb == "create":
                return self._create(body)
            if name not in self._of(resource):
                return status(404, "NotFound", f'{resource} "{name}" not found')
            found = self._of(resource)[name]
            if verb == "get":
                return 200, found
            if (uid := (body or {}).get("preconditions", {}).get("uid", found["metadata"]["uid"])) != _uid(found):
                return status(409, "Conflict", f"the UID in the precondition ({uid}) does not match")
            (self._delete_job if resource == "jobs" else self._delete_pod)(found, body or {})
            return 200, found

    def _of(self, resource):
        return self.jobs if resource == "jobs" else self.pods

    def _create(self, job):
        name = job["metadata"]["name"]
        if found := problems_of_job(job):
            return status(422, "Invalid", f'Job.batch "{name}" is invalid: {"; ".join(found)}')
        if name in self.jobs:
            return status(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
        made = {**job, "metadata": {**job["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": now()}}
        self.jobs[name] = {**made, "status": {}}
        if self.makes_pods:
            self.make_pod(name)
        return 201, self.jobs[name]

    def make_pod(self, job_name, phase="Pending"):
        """The next pod of a Job."""
        job = self.jobs[job_name]
        name, template = f"{job_name}-{uuid.uuid4().hex[:5]}", job["spec"]["template"]
        labels = {**template["metadata"]["labels"], JOB_UID: _uid(job)}
        metadata = {"name": name, "uid": str(uuid.uuid4()), "labels": labels, "creationTimestamp": now()}
        self.pods[name] = {"metadata": metadata, "spec": template["spec"], "status": {"phase": phase}}
        return self.pods[name]

    def pod_of(self, consumer):
        """The newest pod of a consumer."""
        return [pod for pod in self.pods.values() if _labels(pod)["kgs/consumer"] == str(consumer)][-1]

    def job_of(self, consumer):
        """The newest Job of a consumer."""
        return [job for job in self.jobs.values() if _labels(job)["kgs/consumer"] == str(consumer)][-1]

    def run(self, consumer):
        """The kubelet starts it."""
        pod = self.pod_of(consumer)
        pod["status"] = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
        return pod

    def end(self, pod, code=0, reason=None):
        """The kubelet says that its container has ended; its Job is over, and what is to be deleted goes."""
        with self.lock:
            ended = {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error")}
            states = [{"state": {"terminated": ended}}]
            pod["status"] = {"phase": "Failed" if code else "Succeeded", "containerStatuses": states}
            for job in [job for job in self.jobs.values() if _uid(job) == _labels(pod)[JOB_UID]]:
                kind = "Failed" if code else "Complete"
                job["status"] = {"conditions": [{"type": kind, "status": "True"}]}
            if "deletionTimestamp" in pod["metadata"]:
                self.remove(pod)

    def remove(self, pod):
        """A pod is not there any more; neither is its Job, where that is to be deleted."""
        with self.lock:
            self.pods.pop(pod["metadata"]["name"], None)
            owner = _labels(pod)[JOB_UID]
            if not any(_labels(each)[JOB_UID] == owner for each in self.pods.values()):
                gone = {n for n, j in self.jobs.items() if _uid(j) == owner and "deletionTimestamp" in j["metadata"]}
                self.jobs = {name: job for name, job in self.jobs.items() if name not in gone}

    def _delete_job(self, job, options):
        mine = [pod for pod in self.pods.values() if _labels(pod)[JOB_UID] == _uid(job)]
        job["metadata"]["deletionTimestamp"] = now()
        if options.get("propagationPolicy") == "Background" or not mine:
            self.jobs.pop(job["metadata"]["name"])
        for pod in mine:
            self._delete_pod(pod, {})

    def _delete_pod(self, pod, options):
        pod["metadata"]["deletionTimestamp"] = now()
        if pod["status"]["phase"] == "Pending" or options.get("gracePeriodSeconds") == 0:
            self.remove(pod)
        elif options.get("gracePeriodSeconds") == 1:
            self.end(pod, 137)


def status(code, reason, message):
    """A refusal as Kubernetes writes it."""
    return code, {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _fits(selector, labels):
    """Parts `name=value`, and `name` for one with any."""
    parts = (part.partition("=") for part in selector.split(",") if part)
    return all(name in labels and value in (labels[name], "") for name, _, value in parts)


def _labels(of):
    return of["metadata"].get("labels", {})


def _uid(of):
    return of["metadata"]["uid"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self):
        cluster, found = self.server.cluster, PATH.fullmatch(urlsplit(self.path).path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        resource, name, verb = found[2], found[3], VERBS[self.command]
        asked = "list" if verb == "get" and name is None else verb
        time.sleep(cluster.delay_s)
        fault = cluster.fault(asked, resource)
        if fault == NEVER_ANSWERS:
            self.server.is_closing.wait()
            return
        if (asked, resource) in cluster.forbidden:
            group = "batch" if resource == "jobs" else ""
            user = f"system:serviceaccount:{found[1]}:controller"
            words = f'User "{user}" cannot {asked} resource "{resource}" in API group "{group}" in the namespace "kgs"'
            code, answer = status(403, "Forbidden", f"{resource} is forbidden: {words}")
        elif isinstance(fault, int):
            code, answer = status(fault, "Fault", f"fault {fault}")
        elif isinstance(fault, tuple):
            code, answer = status(*fault)
        else:
            code, answer = cluster.answer(verb, resource, name, parse_qs(urlsplit(self.path).query), body)
        cluster.requests.append((asked, resource))
        if fault == LOSES_ANSWER:
            self.connection.close()
            return
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815 - http.server's names

    def log_message(self, *_):
        """Nothing: the test says what has failed."""


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False

    def handle_error(self, request, client_address):
        """A client that does not wait for its answer is what some tests want."""


@contextmanager
def api_server(cluster):
    """Serves the cluster; gives its address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.cluster, server.is_closing = cluster, threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.is_closing.set()
        server.shutdown()
        server.server_close()


def kubeconfig(folder, address, namespace="kgs"):
    """A file that leads there."""
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
                "current-context": "x",
            }
        )
    )
    return file
