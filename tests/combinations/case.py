"""A case: one rule, and a history of steps. Its `repr` is the code that makes it again, line by line."""

from dataclasses import dataclass, fields, is_dataclass

PARTITIONS = 2
PARTITION_OF = {None: 0, "k1": 0, "k2": 1, "k3": 0}
"""Key -> its partition."""
TOPICS = ("t", "u")
REGISTRY_FORMATS = ("avro", "protobuf", "json_schema")
FIELD_FORMATS = ("json", *REGISTRY_FORMATS)
OLD, NEW = 1, 2
"""Ids of the two schemas that a registry may have, and the two editions of a rule."""
ADDED = ("long", "struct<a: long>", "array<long>", "map<string,long>")


class Short:
    """Shows itself as a dataclass does, without what is as always."""

    def __repr__(self) -> str:
        assert is_dataclass(self)
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return f"{type(self).__name__}({', '.join(f'{name}={each!r}' for name, each in given.items())})"


@dataclass(frozen=True, repr=False)
class Rule(Short):
    """What kgs.yaml says of the topics.

    Attributes:
        named: of a format with a registry: it says the columns itself.
        key: `key_format`.
        partitioned: by `column`.
        route: rows of two values have side tables.
        added: type of the column that the second edition of a JSON rule adds; it drops the decimal `p`.
        shared: two topics fill one table.
        newest: "" or what `newest_rows` does with tombstones.
        order: of `newest_rows`.
        by: its key: "_key", or the routing column.
        vectors: of `newest_rows`: `deletion_vectors`.
        changes: of `newest_rows`: values are rows by Debezium, so a record without one deletes, and is no dead letter.
        mask: path and what becomes of it, pairs.
        small: what is done in parts (merges, redrives, batches of several files) is done in the smallest ones.
    """

    format: str = "json"
    named: bool = False
    key: str = "raw"
    partitioned: bool = False
    sorted: bool = False
    route: bool = False
    evolve: str = "none"
    rescue: bool = False
    added: str = "long"
    shared: bool = False
    newest: str = ""
    order: str = "offset"
    by: str = "_key"
    vectors: bool = False
    changes: bool = False
    mask: tuple[tuple[str, str], ...] = ()
    commit: str = "direct"
    small: bool = False

    @property
    def column(self) -> str:
        """The column to partition and route by; empty: there is none."""
        return "s" if self.format in FIELD_FORMATS else "key" if self.key == "string" else ""

    @property
    def topics(self) -> tuple[str, ...]:
        return TOPICS if self.shared else TOPICS[:1]


@dataclass(frozen=True, repr=False)
class Record(Short):
    """A record; its number in the history is its value.

    Attributes:
        s: value of the routing column.
        what: what kind of value it is, see `values`.
    """

    what: str = "good"
    key: str | None = "k1"
    s: str | None = "a"
    topic: str = "t"


@dataclass(frozen=True, repr=False)
class Step(Short):
    """One step of a history."""


@dataclass(frozen=True, repr=False)
class Send(Step):
    """Records are written to Kafka."""

    records: tuple[Record, ...]


@dataclass(frozen=True, repr=False)
class Round(Step):
    """A consumer's round; it is started if need be, and owns all partitions.

    Attributes:
        who: which of two consumers, each of which takes itself for the only one.
        most: bytes of its batch; 0: all that is there.
        waits: its batch is not due yet.
        ahead: it reads ahead.
        looks: it looks after its topics before.
        until: "point:n": there it is frozen when it comes by the n-th time; nothing says that it wakes up.
    """

    who: int = 0
    most: int = 0
    waits: bool = False
    ahead: bool = False
    looks: bool = True
    until: str = ""


@dataclass(frozen=True, repr=False)
class Restart(Step):
    """A consumer's process is killed between two rounds."""

    who: int = 0


@dataclass(frozen=True, repr=False)
class Thaw(Step):
    """What was frozen first wakes up."""


@dataclass(frozen=True, repr=False)
class Redrive(Step):
    """`kgs redrive`; `until` as in `Round`, here and below."""

    until: str = ""


@dataclass(frozen=True, repr=False)
class Erase(Step):
    """`kgs erase` of a record's key."""

    key: str = "k1"
    until: str = ""


@dataclass(frozen=True, repr=False)
class Materialize(Step):
    """`kgs materialize`."""

    until: str = ""


@dataclass(frozen=True, repr=False)
class Maintain(Step):
    """`kgs maintain`; with `later` log entries before the checkpoint have expired."""

    later: bool = False


@dataclass(frozen=True, repr=False)
class Adopt(Step):
    """The group gets another name; `kgs adopt --from-group`."""

    until: str = ""


@dataclass(frozen=True, repr=False)
class Registry(Step):
    """The registry from now on: "answers", "away", or it has no schema of an id: "forgets 1", "forgets 2"."""

    how: str = "answers"


@dataclass(frozen=True, repr=False)
class Register(Step):
    """The registry gets the second schema."""


@dataclass(frozen=True, repr=False)
class Change(Step):
    """kgs.yaml gets the second edition of the rule, for processes that start from now on."""


@dataclass(frozen=True, repr=False)
class MakeAgain(Step):
    """A topic is deleted and made again."""

    topic: str = "t"


@dataclass(frozen=True, repr=False)
class Accept(Step):
    """`kgs accept-topic`."""

    topic: str = "t"


@dataclass(frozen=True)
class Case:
    rule: Rule
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        steps = "".join(f"\n    {step!r}," for step in self.steps)
        return f"Case({self.rule!r}, ({steps}\n))"
