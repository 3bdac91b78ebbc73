"""The fits that look at every open bin: first, best and worst."""

import heapq
import math
from bisect import bisect_left, bisect_right, insort

from kgs_core.model import BytesPerSecond, ConsumerId


class WorstFit:
    """The bin with the most slack; of equal ones the lowest number.

    References:
        Landau 2022, section "Approximation Algorithms", WFD.
    """

    def __init__(self) -> None:
        self._loads: dict[ConsumerId, BytesPerSecond] = {}
        # entries whose load is no longer true stay until they come to the top
        self._heap: list[tuple[BytesPerSecond, ConsumerId]] = []

    def choose(self, room: BytesPerSecond) -> ConsumerId | None:
        """The least loaded bin, if its load is at most `room`."""
        heap = self._heap
        while heap and self._loads[heap[0][1]] != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][1] if heap and heap[0][0] <= room else None

    def put(self, consumer: ConsumerId, _before: BytesPerSecond | None, after: BytesPerSecond) -> None:
        """The load of `consumer` is `after` now."""
        self._loads[consumer] = after
        heapq.heappush(self._heap, (after, consumer))


class BestFit:
    """The bin that is filled most tightly; of equal ones the lowest number.

    References:
        Landau 2022, section "Approximation Algorithms", BFD.
    """

    def __init__(self) -> None:
        # (load, -number) ascending: of equal loads the lowest number comes last, where the search ends
        self._bins: list[tuple[BytesPerSecond, float]] = []

    def choose(self, room: BytesPerSecond) -> ConsumerId | None:
        """The most loaded of the bins whose load is at most `room`."""
        found = bisect_right(self._bins, (room, math.inf))
        return ConsumerId(-int(self._bins[found - 1][1])) if found else None

    def put(self, consumer: ConsumerId, before: BytesPerSecond | None, after: BytesPerSecond) -> None:
        """The load of `consumer` went from `before` to `after`."""
        if before is not None:
            self.remove(consumer, before)
        insort(self._bins, (after, -consumer))

    def remove(self, consumer: ConsumerId, load: BytesPerSecond) -> None:
        """There is no such bin any more; its load was `load`."""
        del self._bins[bisect_left(self._bins, (load, -consumer))]


class FirstFit:
    """The bin with the lowest number that has room.

    The least load of every range of bins is kept in a binary tree over the numbers' order, so that the search need not
    look at full bins one by one.

    References:
        Landau 2022, section "Approximation Algorithms", FFD.
    """

    def __init__(self, numbers: list[ConsumerId]) -> None:
        """`numbers`: every one that a bin can get, ascending."""
        self._numbers = numbers
        self._rank = {number: rank for rank, number in enumerate(numbers)}
        self._leaves = 1 << max(0, len(numbers) - 1).bit_length()
        self._least = [math.inf] * (2 * self._leaves)

    def choose(self, room: BytesPerSecond) -> ConsumerId | None:
        """The lowest number among the bins whose load is at most `room`."""
        least = self._least
        if not least[1] <= room:
            return None
        node = 1
        while node < self._leaves:
            node *= 2
            if not least[node] <= room:
                node += 1
        return self._numbers[node - self._leaves]

    def put(self, consumer: ConsumerId, _before: BytesPerSecond | None, after: BytesPerSecond) -> None:
        """The load of `consumer` is `after` now."""
        least = self._least
        node = self._leaves + self._rank[consumer]
        least[node] = after
        while node > 1:
            node //= 2
            smallest = min(least[2 * node], least[2 * node + 1])
            if least[node] == smallest:
                return
            least[node] = smallest
