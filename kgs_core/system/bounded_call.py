"""A call with a limit to all of it: clients bound each step, and a server that drips is within that for ever."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def answer_within(timeout_s: float, question: Callable[[], T], name: str) -> T:
    """What `question` gives, or raises. It is asked by a thread, which is left behind where it does not come back.

    Args:
        question: must do no harm where it comes back later, to nobody.

    Raises:
        TimeoutError: it has not come back.
    """
    found: queue.SimpleQueue[tuple[T] | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put((question(),))
        except BaseException as e:  # noqa: BLE001 - raised by who waits
            found.put(e)

    threading.Thread(target=ask, name=name, daemon=True).start()
    try:
        answer = found.get(timeout=timeout_s)
    except queue.Empty:
        raise TimeoutError(f"no whole answer within {timeout_s:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
