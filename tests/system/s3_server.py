"""An S3 server on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from kgs_core.lake.files.storage import Storage
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

ACCESS, SECRET, REGION, BUCKET = "tester", "not-a-secret", "us-east-1", "lake"


def find_versitygw() -> str | None:
    """The server's program: VERSITYGW, beside this Python, or on PATH; None where there is none."""
    beside = Path(sys.executable).with_name("versitygw")
    named = os.environ.get("VERSITYGW")
    return named or (str(beside) if beside.exists() else shutil.which("versitygw"))


class S3Server:
    """versitygw on a folder; can be killed and started again on the same port."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._ports = PortReservation()
        self.port = self._ports.reserve()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers."""
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        command = [self._program, "--access", ACCESS, "--secret", SECRET, "--region", REGION]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", f"{HOST}:{self.port}", "--quiet", "posix", str(data)], stdout=log, stderr=log
            )
        wait_until(self._answers, 20, f"S3 server answers: {(self._folder / 'server.log').read_text()[-500:]}")

    def kill(self) -> None:
        """At once, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def close(self) -> None:
        self.kill()
        self._ports.release()

    def _answers(self) -> bool:
        config = Config(retries={"max_attempts": 1}, connect_timeout=1, read_timeout=2)
        client = boto3.client(
            "s3", endpoint_url=f"http://{HOST}:{self.port}", region_name=REGION, config=config,
            aws_access_key_id=ACCESS, aws_secret_access_key=SECRET,
        )  # fmt: skip
        try:
            client.create_bucket(Bucket=BUCKET)
        except client.exceptions.BucketAlreadyOwnedByYou:
            return True
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True


def storage_at(port: int, prefix: str) -> Storage:
    """A lake in the bucket, reached through this port."""
    options = {
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    return Storage(f"s3://{BUCKET}/{prefix}", options)
