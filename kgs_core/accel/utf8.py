"""Characters in UTF-8, for compiled loops: imported only where they are compiled. Nothing here can raise."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from kgs_core.accel.loops import octets

Helper = TypeVar("Helper", bound=Callable[..., Any])


def helper(function: Helper) -> Helper:
    """Function that compiled ones may call, each int64 to one or to a tuple of them."""
    to_code: Any = numba.njit(error_model="numpy")
    compiled: Helper = to_code(function)
    return compiled


@helper
def more_of_character(values: int, p: int, stop: int) -> int:
    """How many bytes follow the first one of a character outside ASCII; 0: it is not UTF-8."""
    of = octets(values)
    byte = of[p]
    more, least, most = 0, 128, 191
    if 194 <= byte <= 223:
        more = 1
    elif 224 <= byte <= 239:
        more = 2
        if byte == 224:
            least = 160
        elif byte == 237:
            most = 159
    elif 240 <= byte <= 244:
        more = 3
        if byte == 240:
            least = 144
        elif byte == 244:
            most = 143
    if more == 0 or p + more >= stop or of[p + 1] < least or of[p + 1] > most:
        return 0
    for k in range(2, more + 1):
        if of[p + k] < 128 or of[p + k] > 191:
            return 0
    return more
