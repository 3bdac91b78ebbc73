"""What `bench scale` takes and prints, and the load that it makes."""

import math
from dataclasses import fields

from bench.group_scale import ScaleFigures, growth
from bench.scale_load import GrowingLogs, scale_settings
from kgs_core.monitor.speeds import Window


def figures(partitions, value):
    named = {field.name: value for field in fields(ScaleFigures)}
    return ScaleFigures(**named | {"partitions": partitions, "consumers": 9, "readers": 7, "step_moved": 0})


def test_growth_is_an_exponent_in_partitions_and_left_out_at_zero():
    found = growth(figures(100, 2.0), figures(1000, 200.0))
    assert math.isclose(found["step_s"], 2.0)
    assert math.isclose(found["readers"] + 1, 1.0)
    assert "step_moved" not in found


def test_the_load_grows_as_it_says_and_its_step_quickens_a_tenth(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("bench.scale_load.time.monotonic", lambda: now[0])
    settings = scale_settings("b:9092")
    logs = GrowingLogs(settings, 50, 5)

    def speeds():
        window = Window(3.0, 1.0)
        for _ in range(4):
            measurement = window.add(logs.read())
            now[0] += 1.0
        return measurement.known

    before = speeds()
    assert math.isclose(sum(before.values()), 0.7 * 5 * settings.packing.packing_capacity, rel_tol=1e-3)
    logs.step()
    after = speeds()
    faster = [tp for tp in before if math.isclose(after[tp], 4 * before[tp], rel_tol=1e-2)]
    assert len(faster) == 5
    assert all(math.isclose(after[tp], before[tp], rel_tol=1e-2) for tp in before if tp not in faster)
