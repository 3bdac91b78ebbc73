"""What the compiled loops and their callers share: places in librdkafka's messages and in our own tables of numbers.

Imports nothing: the loops are compiled with these as constants.
"""

# rd_kafka_message_t on a 64-bit machine, part of librdkafka's public interface: bytes from its beginning.
ERROR, TOPIC, PARTITION, VALUE, VALUE_SIZE, KEY, KEY_SIZE, OFFSET = range(0, 64, 8)

PARTITION_END = -191
"""RD_KAFKA_RESP_ERR__PARTITION_EOF."""

# A message's note: one row of int64.
SLOT, CODE, AT, VALUE_BYTES, KEY_BYTES, HEADERS, HEADER_BYTES, NOTE = range(8)
NOBODY = -1
"""The slot of a message that belongs to no partition in hand."""

# A topic's sums in a batch: one row of int64. The first are those of its records' notes.
ROWS, SUM_VALUE, SUM_KEY, SUM_HEADERS, SUM_HEADER_BYTES, SUMS = range(6)

# What `take` knows of a batch: int64.
TAKEN, TAKEN_BYTES, IS_FULL, BATCH = range(4)

# A topic's columns while they are filled, one row of int64: first how far each has come, then where each begins.
(
    ROW,
    VALUE_END,
    KEY_END,
    HEADER,
    NAME_END,
    CONTENT_END,
    NO_VALUE,
    NO_KEY,
    NO_CONTENT,
    VALUES,
    VALUE_OFFSETS,
    VALUE_THERE,
    KEYS,
    KEY_OFFSETS,
    KEY_THERE,
    PARTITIONS,
    OFFSETS,
    TIMES,
    EPOCHS,
    HEADER_OFFSETS,
    NAMES,
    NAME_OFFSETS,
    CONTENTS,
    CONTENT_OFFSETS,
    CONTENT_THERE,
    COLUMNS,
) = range(26)

NO_TIME = -(2**63)
"""The time of a record that has none, ms."""

# librdkafka's functions, by address: int64. Behind them four numbers of scratch, which the functions write to.
TIMESTAMP, LEADER_EPOCH, MESSAGE_HEADERS, HEADER_GET_ALL, DESTROY, SCRATCH = range(6)
CALLS = SCRATCH + 4
