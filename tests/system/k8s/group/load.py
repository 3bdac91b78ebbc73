"""In a pod of the cluster: numbered records at the rate that a file names, and at the end those acknowledged.

    python load.py SERVERS TOPIC=PARTITIONS ...

makes the topics. /tmp/load/rate is read all the time: bytes/s of all partitions together. Once /tmp/load/stop is there,
no record is sent any more; then /tmp/load/TOPIC.json.gz has every acknowledged one, [[partition, offset, value]].
"""

import gzip
import json
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from ledger import Ledger  # type: ignore[import-not-found]  # beside it, where it runs

FOLDER = Path("/tmp/load")


def main(servers: str, *topics: str) -> None:
    """Until it is told to stop; then it stays, to be asked."""
    partitions = {name: int(count) for name, _, count in (each.partition("=") for each in topics)}
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()]).values():
        made.result(60)
    FOLDER.mkdir()
    rate = FOLDER / "rate"
    rate.write_text("10000")
    ledgers = {name: Ledger(servers, name, lambda count=count: count, 5000.0) for name, count in partitions.items()}
    for ledger in ledgers.values():
        ledger.start()
    while not (FOLDER / "stop").exists():
        of_each = float(rate.read_text()) / sum(partitions.values())
        for name, ledger in ledgers.items():
            ledger.bytes_per_s = of_each * partitions[name]
        time.sleep(0.2)
    for name, ledger in ledgers.items():
        ledger.close()
        rows = [[partition, offset, value.decode()] for partition, offset, value in sorted(ledger.acknowledged)]
        with gzip.open(FOLDER / "writing", "wt") as file:
            json.dump(rows, file)
        (FOLDER / "writing").rename(FOLDER / f"{name}.json.gz")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
