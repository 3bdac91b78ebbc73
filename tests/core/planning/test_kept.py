"""A result is kept for as long as its arguments are the same, and no longer."""

from kgs_core.planning.kept import kept


def test_only_what_differs_from_the_last_few_is_worked_out():
    calls = []

    @kept
    def total(numbers, more):
        calls.append((numbers, more))
        return {"total": sum(numbers.values()) + more}

    first = total({"a": 1}, 2)
    assert total({"a": 1}, 2) is first
    assert (first, len(calls)) == ({"total": 3}, 1)
    assert [total({"a": n}, more)["total"] for n in (1, 2) for more in (0, 5)] == [1, 6, 2, 7]
    calls.clear()
    for n in range(100, 200):
        total({"a": n}, 0)
    total({"a": 199}, 0)
    assert len(calls) == 100, "the last one was there"
    total({"a": 100}, 0)
    assert len(calls) == 101, "the first one was not: they would fill the memory"
