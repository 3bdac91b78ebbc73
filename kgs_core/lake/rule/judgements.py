"""Which of two readings of a record counts, where they may differ: a number of each partition. Pure.

Whether a record is good follows from the record and its rule, so that a replay finds the same dead letters. There are
two exceptions: a schema that the registry lacks at one reading and has at another, and a rule that was changed while a
batch was half committed. Dead letters are committed before rows and in another table, so without more a replay might
make a row of a letter, or make neither, and a writer that was frozen might add a letter to a row.
1. Below the mark of the dead-letter table, or of a side table, what is there is the verdict, whatever it would be now.
   Only between position and mark, after a kill, anybody has to look.
2. Letters that another reading might not find are *announced*: by a number in the log of the topic's own table, under
   the condition that the position is where the batch begins. From then on no batch that was read before may land.
3. The number then goes into the log of the dead-letter table and of every side table, before the letters do. Every
   commit there expects it, so no earlier owner adds anything any more.
4. It is odd while such a batch is open, and the commit of its rows makes it even. Who takes the partition up while it
   is odd makes it the next odd one, there and in the other tables, and looks at the letters after that.
So an odd number has one owner, and what he found in the lake stays as it is for as long as he has it.
"""


def is_open(number: int | None) -> bool:
    """Whether a batch was announced and its rows are not committed."""
    return number is not None and number % 2 == 1


def announced(number: int | None) -> int:
    """The next number: of an announcement, or of who takes up what another has announced."""
    return (number or 0) + (2 if is_open(number) else 1)


def closed(number: int) -> int:
    """The number once the rows are committed."""
    return number + number % 2


def elsewhere(number: int | None) -> int | None:
    """What the other tables have: the last odd one."""
    return None if not number else number - 1 + number % 2
