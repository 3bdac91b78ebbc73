"""Codes of the reasons why a record is a dead letter: `[wrong_type] column n: a text, wanted is a number (double)`.

Words may change from version to version; codes do not, so select dead letters by code. The code of a reason, also of
dead letters without one, follows from its words.
"""

import re
from functools import lru_cache

OTHER = "other"
LOST_METADATA = frozenset({"bad_header", "bad_timestamp"})
"""Codes of records with a part that fits no column: their dead letters lack it."""
_WORDS = (
    ("bad_header", r"header of the record: "),
    ("bad_timestamp", r"timestamp of the record: "),
    ("tombstone", r"no value \(tombstone\)"),
    ("empty", r"empty value"),
    (
        "no_schema",
        r"names no schema|too short: |begins with byte|holds no schema's id|Confluent's API knows no"
        r"|the schema registry has no|schema \S+( is of kind|:)|no message indexes|its header has no message"
        r"|.* in the writer's schema, ",
    ),
    ("no_partition", r"value of partition column"),
    ("not_json", r"not one JSON object|not a JSON object|more than one JSON object"),
    (
        "malformed",
        r".*(ends too early|goes on behind its end|more than 64 bits|neither 0 nor 1|length below zero"
        r"|branch that its union|not a message of type|cannot be made columns)",
    ),
    # Words of pyarrow, whose reader alone judges what is nested very deep; some end in the value
    ("too_big", r"Failed to convert JSON to decimal.* requires scale|The string '.*' cannot be represented"),
    ("wrong_type", r"Failed to (convert|parse)|The string '.*' is not a valid"),
    ("not_utf8", r".*(not UTF-8|surrogate|utf-8|UTF8)"),
    ("given_twice", r".*(given|specified) twice"),
    ("too_big", r".*([Tt]oo big|out of range|overflow|more digits|no long holds|does not fit in precision)"),
    (
        "wrong_type",
        r".*(wanted is|a text that is no|not base64|no instant|no span of time|what JSON cannot say"
        r"|changed from|conversion|[Ii]nvalid value)",
    ),
    ("not_json", r"JSON parse error"),
)
"""Code, and a pattern that the words of its reasons match from their beginning; the first match counts."""
_PLACE = re.compile(
    r"(key: )?((column|field|header(?! of the record:)) .*?: |an item: |an entry: |Column\(.*?\): )*", re.S
)
"""Where a value is wrong, which is no part of the words: a column may be named `surrogate_key` or `overflow`."""
CODES = (*dict(_WORDS), OTHER)
_PREFIX = re.compile(r"\[([a-z0-9_]+)\] ?(.*)", re.DOTALL)
_PATTERNS = tuple((code, re.compile(words, re.DOTALL)) for code, words in _WORDS)


@lru_cache(4096)
def code_of(error: str) -> str:
    """The code of a dead letter's `error`, which may begin with it."""
    given = _PREFIX.fullmatch(error)
    if given is not None:
        return given.group(1)
    words = _PLACE.sub("", error, count=1)
    return next((code for code, beginning in _PATTERNS if beginning.match(words)), OTHER)


def with_code(reason: str) -> str:
    """A dead letter's `error`: the code, then the words. A reason that begins with a code keeps it."""
    return reason if _PREFIX.fullmatch(reason) else f"[{code_of(reason)}] {reason}"
