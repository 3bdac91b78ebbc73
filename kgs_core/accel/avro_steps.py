"""Steps that a walk through one Avro datum takes: what `avro_schema` writes and `avro_walk` goes by.

A step is `WIDTH` numbers: one of those below, and what it needs.
"""

WIDTH = 4
END = 0
"""The datum is over: no byte may be left."""
NUMBER = 1
"""A whole number from `low` (second) to `high` (third)."""
SKIP = 2
"""So many bytes (second), whatever they are."""
BOOLEAN = 3
BYTES = 4
TEXT = 5
NULLABLE = 6
"""Index of a union with null: which one is null (second), and the step that follows null (third)."""
BLOCK = 7
"""Number of items of the next block of an array or map; with none, on at a step (second)."""
NEXT = 8
"""One item is over: where there are more, on at a step (second); else at the array's BLOCK (third)."""
DECIMAL = 9
"""A decimal: its bytes, or 0 where its length stands in front (second); below ten to the power (third)."""

TOO_SHORT, TOO_LONG, BAD_NUMBER, OUT_OF_RANGE, BAD_BOOLEAN, BAD_LENGTH, NOT_UTF8, BAD_UNION, BIG_DECIMAL = range(1, 10)
FAULTS = {
    TOO_SHORT: "ends too early",
    TOO_LONG: "goes on behind its end",
    BAD_NUMBER: "a number of more than 64 bits",
    OUT_OF_RANGE: "a number out of range",
    BAD_BOOLEAN: "a boolean that is neither 0 nor 1",
    BAD_LENGTH: "a length below zero",
    NOT_UTF8: "a string that is not UTF-8",
    BAD_UNION: "a branch that its union does not have",
    BIG_DECIMAL: "a decimal with more digits than its precision",
}
FAULT_BITS = 8
"""A fault is its number and, above these bits, the number of the step."""
