"""Size of the next batch, between two bounds: larger while commits are slow. Pure.

Theory of operation. A table gives one log entry at a time, so what consumers that share it can write together is the
commits it takes in a second, times the size of a batch. More consumers make each commit slower, and the table may even
take fewer of them. Where each goes on with the same size, bytes/s stand still or fall. So the size follows the time
that a commit takes:

1. A commit shall take `COMMIT_SHARE` of a round, no more. With a commit of c seconds, and work (gathering, transform,
   writing) at r bytes/s, the batch for that has 2 r c bytes, for a share of a third. That is the wanted size.
2. It is kept between `least` (`consumer.batch_bytes`) and `most` (four times that, up to 64 MB), so quick commits mean
   `least`, and memory has a bound. One step doubles or halves the size at most: one slow commit says little.
3. c and r do not depend on the size, or r grows with it (a round has a fixed part), by less than the size does. So with
   commits of the same length the size comes to rest: each step goes in the direction of the wanted size, not past it.
4. A batch that is not full says that there is no backlog: the size goes back towards `least`, so that rows wait no
   longer than need be. A round without a batch says nothing: it may have gathered a part of one. Its time counts to
   the work on the batch that comes of it.
5. What is not known is not zero. Where no commit was tried, the size stays. One that was refused, or is still under
   way, took so long at least: the size may grow by that, and does not shrink.
6. A round stays far from the age at which its process ends (`batch_timeout_s`): a commit counts as no longer than what
   makes a round of `longest_s`.
"""

from dataclasses import dataclass, replace

COMMIT_SHARE = 1 / 3
FULL_SHARE = 0.5
"""Of its size has a batch that is full: one that leaves small topics behind takes a half at least."""
STEP = 2.0
TIMEOUT_SHARE = 0.25
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True)
class BatchSize:
    """Size of the next batch; every call gives a new value.

    Attributes:
        longest_s: how long a round may be made to take.
        now: bytes; `least` at first.
        work_s: what rounds took that have brought no batch yet.
    """

    least: int
    most: int
    longest_s: float
    now: int
    work_s: float = 0.0

    @classmethod
    def between(cls, least: int, most: int, timeout_s: float) -> "BatchSize":
        """As small as may be; no round shall come near `timeout_s`."""
        return cls(least, most, TIMEOUT_SHARE * timeout_s, least)

    def after(
        self, taken_bytes: int, asked_bytes: int, work_s: float, commit_s: float | None, *, has_landed: bool
    ) -> "BatchSize":
        """The size after one more round.

        Args:
            taken_bytes: consumed bytes of what was read.
            asked_bytes: how large it might have been: what was read ahead was asked for with an earlier size.
            work_s: how long gathering, transforms and writing took.
            commit_s: how long all its commits together took, side by side; None: none was tried.
            has_landed: each batch that was read is in its table, by the end of the round.
        """
        work_s = max(self.work_s + work_s, _SHORTEST_S)
        if not taken_bytes:
            return replace(self, work_s=work_s)
        if taken_bytes < FULL_SHARE * asked_bytes:
            wanted = 0.0
        elif commit_s is None:
            wanted = self.now
        else:
            rate = taken_bytes / work_s
            wanted = rate * min(commit_s / COMMIT_SHARE, self.longest_s) * (1 - COMMIT_SHARE)
            wanted = wanted if has_landed else max(wanted, self.now)
        stepped = min(max(wanted, self.now / STEP), self.now * STEP)
        return replace(self, now=int(min(max(stepped, self.least), self.most)), work_s=0.0)
