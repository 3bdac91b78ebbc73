"""Broken JSON behind a frame, a batch against each alone: `python -m tests.fuzz_json_schema BROKEN SEED`."""

import json
import random
import sys
from collections import Counter

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.demo.registry_stub import running_registry
from kgs_core.ingest.formats.json.json_objects import parse_json
from kgs_core.ingest.formats.json.json_schema import columns_of, parse_json_schema
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ports.registry import SchemaKind
from tests.json_schema_values import REFERENCED, SCHEMA, any_object
from tests.protobuf_values import broken, comparable

BATCH, BROKEN_SHARE = 200, 0.7
RULE = TopicRule(topic="t", format="json_schema")


def registered(registry, subject="t-value", schema=SCHEMA):
    """Id of a schema, with what it refers to."""
    registry.register("place", json.dumps(REFERENCED), SchemaKind.JSON)
    return registry.register(subject, json.dumps(schema), SchemaKind.JSON, [("place.json", "place", 1)])


def batch_of(values, columns, of=None, headers=None):
    return ValueBatch(pa.array(values, pa.binary()), columns, "t", RULE, headers, of)


def differences(count, seed):
    """Values for which a batch gives another answer than a look at each alone; and how many were what.

    Args:
        count: how many broken values at least; the others lie between them.
        seed: of what is drawn.
    """
    chance, wrong, tally = random.Random(seed), [], Counter()
    with running_registry() as registry:
        frame = b"\0" + registered(registry).to_bytes(4, "big")
        of = RegistrySettings(url=registry.url)
        columns = columns_of("t", RULE, of)
        while tally["broken"] < count:
            bodies = [_body(chance, tally) for _ in range(BATCH)]
            found = parse_json_schema(batch_of([frame + body for body in bodies], columns, of))
            found.table.validate(full=True)
            rows = dict(zip(found.good, found.table.to_pylist(), strict=True))
            for i, body in enumerate(bodies):
                alone = parse_json(batch_of([body], columns))
                tally["good" if alone.good else "bad"] += 1
                want = [comparable(row) for row in alone.table.to_pylist()]
                got = [comparable(rows[i])] if i in rows else []
                if repr(want) != repr(got) or found.bad.get(i) != alone.bad.get(0):
                    wrong.append((body, found.bad.get(i), alone.bad.get(0)))
    return wrong, tally


def _body(chance, tally):
    value = any_object(chance)
    if chance.random() >= BROKEN_SHARE:
        return value
    tally["broken"] += 1
    return broken(chance, value, any_object(chance))


if __name__ == "__main__":
    found, counts = differences(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(f"{dict(counts)}, {len(found)} differ", *found[:5], sep="\n")
    sys.exit(bool(found))
