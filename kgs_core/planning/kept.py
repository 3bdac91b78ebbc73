"""Results kept for the next call: of functions of what is large, never changes, and is the same most of the time."""

from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Found = TypeVar("Found")

_KEPT = 3


def kept(function: Callable[[*Arguments], Found]) -> Callable[[*Arguments], Found]:
    """`function`, worked out only where its arguments are not equal to those of one of the last few calls.

    To find that out costs next to nothing where they are the same objects, or tuples of the same. It must be pure, and
    nobody may change what it has got or gives.
    """
    last: deque[tuple[tuple[*Arguments], Found]] = deque(maxlen=_KEPT)

    @wraps(function)
    def found(*arguments: *Arguments) -> Found:
        for known, result in tuple(last):
            if known == arguments:
                return result
        result = function(*arguments)
        last.append((arguments, result))
        return result

    return found
