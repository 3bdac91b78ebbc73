"""What the compiled JSON scanner and its caller share: kinds of columns, and places in the tables of numbers.

Imports nothing: the loops are compiled with these as constants.
"""

BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, BOOLEAN, TEXT, TIME, DAY, OTHER = range(11)
"""Kinds of columns. A value of `OTHER` is never taken, but for null."""

# A column, one row of int64. NAME: address of its name's bytes. OUT: address of its numbers (of BOOLEAN one byte each)
# or, of TEXT, of where each begins in the values (~begin: with escapes); SIZES: how long each is without escapes.
# THERE: address of one byte a row: whether it is not null. LAST: the last row that named it; -1 before the first.
# NEXT: the column that came after it the last time, which is looked at first.
NAME, NAME_SIZE, KIND, OUT, SIZES, THERE, LAST, NEXT, WIDTH = range(9)

# What is known of all: number of columns, whether fields without a column are taken, address of the powers of five, the
# end of the bytes that all values lie in, from their beginning, and the column that came first in the last object.
COLUMNS, TAKES_UNKNOWN, POWERS, LIMIT, FIRST = range(5)

LEAST_POWER, MOST_POWER = -64, 64
"""Powers of five in the table: of each the upper and the lower 64 of its first 128 bits."""
LEAST_ROUNDED_UP = -27

BLOCK = 32
"""Bytes that are looked at and copied at once: so many must lie behind where texts are written."""
