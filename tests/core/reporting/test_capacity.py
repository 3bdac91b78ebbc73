"""Capacity in words and values."""

from kgs_core.config.packing import PackingSettings
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.reporting.capacity import capacity_line, capacity_sentences, capacity_values, since_text

AT_MS = 1_700_057_400_000  # 14:10 on 15 November 2023
PACKING = PackingSettings(packing_capacity_bytes_per_s=1_500_000, consumer_capacity_bytes_per_s=2_000_000)


def seen(share, capacity="measured"):
    learnt = Learnt(2.3e6 * share, "1", "a", "x", 3, 400.0, 5.0, AT_MS, {1: 2.3e6 * share})
    return capacity_of(PACKING.model_copy(update={"capacity": capacity}), learnt, None)


def test_a_drift_in_a_sentence():
    (text,) = capacity_sentences(seen(0.7), AT_MS + 60_000)
    assert text.startswith("consumers read 30% less than the configured capacity since 14:10Z")
    (text,) = capacity_sentences(seen(0.7, "learnt"), AT_MS)
    assert text.endswith("plans go by what they read")
    assert list(capacity_sentences(seen(0.95))) == []
    (text,) = capacity_sentences(seen(1.5))
    assert "50% more" in text


def test_times_of_another_day_have_a_date():
    assert since_text(AT_MS, AT_MS + 86_400_000) == "since 2023-11-15 14:10Z"
    assert since_text(2**62, AT_MS) == "since a time that is none"  # one consumer's clock must not hide the group
    assert since_text(AT_MS, None) == "since 2023-11-15 14:10Z"


def test_figures_beside_each_other():
    assert capacity_line(capacity_of(PACKING, Learnt(), None)) == ""
    assert capacity_line(seen(0.7)) == (
        "consumer_capacity 2 MB/s configured, 1.4 learnt (3 consumers flat out at 1.61 MB/s stored)"
    )
    assert capacity_line(seen(0.7, "learnt")).endswith("; in use: 1.4, packed to 1.05")


def test_values_for_json():
    found = capacity_values(seen(0.7, "learnt"))
    assert (found["drift"], found["alarm"], found["mode"]) == (-0.3, True, "learnt")
    assert found["in_use"] == {
        "packing_capacity_bytes_per_s": 1_050_000.0,
        "consumer_capacity_bytes_per_s": 1_400_000.0,
        "is_learnt": True,
    }
    nothing = capacity_values(capacity_of(PACKING, Learnt(), None))
    assert (nothing["learnt_bytes_per_s"], nothing["drift"], nothing["since_ms"]) == (None, None, None)
