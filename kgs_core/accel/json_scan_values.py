"""Values in JSON of which only the end is wanted, for the compiled scanner: imported only where it is compiled.

Nothing here can raise.
"""

from kgs_core.accel.json_scan_numbers import number
from kgs_core.accel.json_scan_texts import after_white, text_end
from kgs_core.accel.loops import octets
from kgs_core.accel.utf8 import helper

_QUOTE, _OPEN, _CLOSE, _LIST, _LIST_END, _COMMA, _COLON = b'"{}[],:'
_T, _F, _N = b"tfn"
_TRUE, _FALSE, _NULL = b"true", b"false", b"null"
_DEEPEST = 60


@helper
def value_begin(values: int, p: int, stop: int) -> int:
    """The place of the value that follows a name, behind whose quote `p` is; -1: none does."""
    p = after_white(values, p, stop)
    if p >= stop or octets(values)[p] != _COLON:
        return -1
    p = after_white(values, p + 1, stop)
    return p if p < stop else -1


@helper
def word_end(values: int, p: int, stop: int) -> int:
    """The place behind `true`, `false` or `null`; -1: something else is here."""
    of = octets(values)
    word = _TRUE if of[p] == _T else _NULL
    if of[p] == _F:
        word = _FALSE
    size = 5 if of[p] == _F else 4
    if p + size > stop:
        return -1
    for k in range(size):
        if of[p + k] != word[k]:
            return -1
    return p + size


@helper
def _plain_end(values: int, p: int, stop: int, limit: int) -> int:
    """The place behind a value that is neither object nor array; -1: unsure."""
    sign = octets(values)[p]
    if sign == _QUOTE:
        return text_end(values, p + 1, stop, limit)[0] + 1 or -1
    if sign == _T or sign == _F or sign == _N:
        return word_end(values, p, stop)
    return number(values, p, stop)[0]


@helper
def value_end(values: int, p: int, stop: int, limit: int) -> int:
    """The place behind a value of any kind; -1: unsure."""
    of = octets(values)
    depth, objects = 0, 0  # a bit for each level: whether it is an object
    while True:
        # Here a value begins
        sign = of[p]
        if sign == _OPEN or sign == _LIST:
            if depth == _DEEPEST:
                return -1
            depth += 1
            objects = (objects << 1) | (1 if sign == _OPEN else 0)
            p = after_white(values, p + 1, stop)
            if p >= stop:
                return -1
            is_over = of[p] == (_CLOSE if objects & 1 else _LIST_END)
            if not is_over and not objects & 1:
                continue
        else:
            p = _plain_end(values, p, stop, limit)
            if p < 0 or depth == 0:
                return p
            p = after_white(values, p, stop)
            if p >= stop:
                return -1
            is_over = True
            if of[p] == _COMMA:
                is_over = False
                p = after_white(values, p + 1, stop)
        # Here levels end, or the next key or item begins
        while is_over:
            if p >= stop or of[p] != (_CLOSE if objects & 1 else _LIST_END):
                return -1
            p += 1
            depth -= 1
            objects >>= 1
            if depth == 0:
                return p
            p = after_white(values, p, stop)
            if p < stop and of[p] == _COMMA:
                is_over = False
                p = after_white(values, p + 1, stop)
        if p >= stop:
            return -1
        if objects & 1:
            if of[p] != _QUOTE:
                return -1
            p = text_end(values, p + 1, stop, limit)[0]
            if p < 0:
                return -1
            p = value_begin(values, p + 1, stop)
            if p < 0:
                return -1
