"""Section `packing`: what a consumer is worth, when and how much may be moved."""

import pytest

from kgs_core.config import PackingSettings


@pytest.mark.parametrize(
    ("windows", "forced"),
    [
        ([], ()),
        (["07:30-20:00"], ("07:30", "12:00", "19:59")),
        (["22:00-06:00"], ("22:00", "00:00", "05:59")),
        (["05:00-06:00", "23:30-00:30"], ("05:30", "23:45", "00:29")),
    ],
)
def test_windows_in_which_only_forced_moves_happen(windows, forced):
    packing = PackingSettings(apply=f"forced_only {', '.join(windows)}".strip())
    asked = ("00:00", "00:29", "00:30", "05:30", "05:59", "06:00", "07:29", "07:30", "12:00", "19:59", "20:00", "22:00")
    for time in {*asked, *forced}:
        minutes = 60 * int(time[:2]) + int(time[3:])
        moment = 1_800_000_000_000 // 86_400_000 * 86_400_000 + minutes * 60_000
        inside = any(
            begins <= time < ends if begins < ends else time >= begins or time < ends
            for begins, ends in (window.split("-") for window in windows)
        )
        assert packing.moves_are_forced_only(moment) == inside, time
        assert inside or time not in forced


def test_a_window_is_two_times_of_day(problems_of):
    for wrong in (
        "forced_only 25:00-06:00",
        "forced_only 05:00",
        "auto 05:00-06:00",
        "forced_only 05:00-06:00 07:00-08:00",
    ):
        (found,) = problems_of(packing=f"packing: {{apply: '{wrong}'}}")
        assert found.startswith(f"packing.apply: '{wrong}': give auto, forced_only")


def test_what_a_consumer_is_worth(problems_of):
    assert PackingSettings(consumer_weight="fewest").weight is None
    assert PackingSettings(consumer_weight=0.5).weight == 0.5
    for wrong in ("0", "1001", "most", "'10%'", "[1]"):
        (found,) = problems_of(packing=f"packing: {{consumer_weight: {wrong}}}")
        assert found.startswith("packing.consumer_weight")
        assert "fewest" in found


def test_how_much_may_be_moved_in_an_hour(problems_of):
    assert PackingSettings().max_rscore_per_hour is None
    assert PackingSettings(max_rscore_per_hour=0).max_rscore_per_hour == 0
    for written, shown in (("-1", "-1"), ("1000001", "1000001"), ("much", "'much'")):
        found = problems_of(packing=f"packing: {{max_rscore_per_hour: {written}}}")
        cure = "give consumers' capacities moved an hour, 0 to 1000000, or null"
        assert found == [f"packing.max_rscore_per_hour: {shown}: {cure}"]
    for odd in (".nan", ".inf"):
        (found,) = problems_of(packing=f"packing: {{max_rscore_per_hour: {odd}}}")
        assert found.startswith("packing.max_rscore_per_hour: ")


@pytest.mark.parametrize(
    ("written", "consumer", "packing"),
    [
        ({"consumer_capacity_bytes_per_s": 100}, 100, 75),
        ({"packing_capacity_bytes_per_s": 75}, 100, 75),
        ({"packing_capacity_bytes_per_s": 90, "consumer_capacity_bytes_per_s": 100}, 100, 90),
    ],
)
def test_one_capacity_gives_the_other(written, consumer, packing):
    found = PackingSettings(**written)
    assert (found.consumer_capacity, found.packing_capacity) == (consumer, packing)
    assert not found.learns_capacity


def test_without_a_number_the_capacity_is_learnt():
    assert PackingSettings().learns_capacity
    assert PackingSettings().with_flat_out(230.0, {}).consumer_capacity == pytest.approx(200)
    assert PackingSettings().with_flat_out(230.0, {}).packing_capacity == pytest.approx(150)
