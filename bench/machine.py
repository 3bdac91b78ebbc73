"""Machine that a benchmark ran on."""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import libversion

from kgs_core.embedded_kafka.jars import KAFKA_VERSION
from kgs_core.spark.java import find_java


def machine(peer: Mapping[str, str]) -> dict[str, Any]:
    """Cores, memory and versions; `peer` holds those of the peer."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load_before": round(psutil.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": find_java().version,
        "kafka": KAFKA_VERSION,
        "spark": version("pyspark"),
        "librdkafka": libversion()[0],
        "pyarrow": version("pyarrow"),
        "deltalake": version("deltalake"),
        **{f"peer_{name.replace('-', '_')}": number for name, number in peer.items()},
    }


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
