"""`kgs metrics` in a process of its own, and what a scrape of it says."""

import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Scrape = Callable[[], dict[str, float]]


@contextmanager
def exporter(command: Sequence[str]) -> Iterator[Scrape]:
    """The command on a free port, ended in order; gives who asks for the value of each series."""
    with exporter_at(command, "--every", "1", "--audit-every", "0.001") as address:
        yield lambda: scraped(f"http://{address}/metrics")


@contextmanager
def exporter_at(command: Sequence[str], *arguments: str) -> Iterator[str]:
    """The command on a free port, ended in order; gives `host:port`."""
    with subprocess.Popen([*command, "--port", "0", *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        try:
            yield address.removeprefix("http://").removesuffix("/metrics")
        finally:
            process.terminate()
            assert process.wait(30) == 0


def scraped(address: str) -> dict[str, float]:
    """Value of each series at an address."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def scraped_beside(log: Path) -> dict[str, float]:
    """Value of each series at the address that a controller has named in its log; empty before that."""
    named = re.findall(r"metrics of .*: (http\S+)", log.read_text())
    return scraped(named[-1]) if named else {}


def counted(shown: dict[str, float]) -> tuple[float, ...]:
    """Changes, those whose end is known, and 1 where a partition had no reader while it changed hands."""

    def total(prefix: str) -> float:
        return sum(value for name, value in shown.items() if name.startswith(prefix))

    unread = min(total("kgs_partition_unread_seconds_count"), 1)
    return total("kgs_changes_total"), total("kgs_change_reaction_seconds_count"), unread
