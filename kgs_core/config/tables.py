"""Which topic goes into which table; refuses two in one that do not agree."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from kgs_core.config.lake_root import split_root
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.layout import MOST_BYTES_OF_FOLDERS, MOST_BYTES_OF_NAME
from kgs_core.config.rule.sharing import differences
from kgs_core.config.rule.topic_names import is_topic_name
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.settings import Settings
from kgs_core.errors import ConfigError

DEAD_LETTERS_SUFFIX = "_dead_letters"
MAX_PART_BYTES = 255
"""Longest name of a folder on the usual file systems."""
MOST_KEY_BYTES = 1024
"""Of an object in S3 and Google Cloud Storage; Azure takes as many characters."""
_FILE_BYTES = 70  # /part-00001-<uuid>-c000.snappy.parquet


@dataclass(frozen=True)
class TableSpec:
    """One topic and the tables it fills.

    Attributes:
        table: path of the rows' table relative to the lake's root.
        dead_letters_table: path of the table for records that could not be parsed, relative to the root too.
        registry: where schemas of values are; None where there is no registry.
        mask_secret: what hashes are made with, or the name of its file.
    """

    topic: str
    table: str
    dead_letters_table: str
    rule: TopicRule
    registry: RegistrySettings | None = None
    mask_secret: str | None = field(default=None, repr=False)

    @property
    def latest_table(self) -> str | None:
        """Path of the derived table with the newest row of each key; None where the rule wants none."""
        latest = self.rule.newest_rows
        return None if latest is None else self.rule.filled(latest.table, self.topic)

    @property
    def history_table(self) -> str | None:
        """Path of the derived table with all changes of each key; None where the rule wants none."""
        latest = self.rule.newest_rows
        return None if latest is None or latest.history is None else self.rule.filled(latest.history, self.topic)

    @property
    def derived_tables(self) -> tuple[str, ...]:
        """Paths of both, as far as the rule has them."""
        return tuple(path for path in (self.latest_table, self.history_table) if path is not None)

    @property
    def side_tables(self) -> dict[str, str]:
        """Value of the route's column, as text -> path of the table of its rows; empty without a route."""
        return self.rule.side_tables_of(self.topic)

    @property
    def all_tables(self) -> tuple[str, ...]:
        """Paths of all tables of the topic."""
        sides = dict.fromkeys(self.side_tables.values())
        return (self.table, self.dead_letters_table, *sides, *self.derived_tables)


def resolve_tables(settings: Settings, topics: Collection[str]) -> dict[str, TableSpec]:
    """The tables of all of `topics` that a rule fits, by topic, sorted.

    Kafka's own topics (`__...`) and those of the group (`kgs.<group>....`) are left out. A rule whose topic is not
    among `topics` is no mistake: it may be created later.

    Raises:
        ConfigError: all collisions: two topics that share a table and whose rules do not agree; tables of two kinds
            (rows, dead letters) with one path; paths that differ only in case, or one path inside the other. Names that
            are not legal or too long for a folder, too.
    """
    specs = {topic: spec for topic in sorted(set(topics)) if (spec := _spec_of(settings, topic)) is not None}
    problems = [*_bad_names(settings, specs.values()), *_collisions(specs.values())]
    if problems:
        raise ConfigError(problems)
    return specs


def tables_of_gone_topics(
    settings: Settings, topics: Collection[str], present: Collection[TableSpec]
) -> tuple[dict[str, TableSpec], list[str]]:
    """The tables of topics that are gone, whose tables are there; and what is wrong with those that are left out.

    No collision can be avoided any more, so names that differ only in case, and tables inside of others, are taken.
    Only a table that has become another topic's, for something else, is left out.

    Args:
        topics: names of topics that are no longer there, and have tables by these rules.
        present: the tables of the topics that are there.
    """
    taken = {claim.path: claim for spec in present for claim in _claims(spec)}
    specs: dict[str, TableSpec] = {}
    problems: list[str] = []
    for spec in (_spec_of(settings, topic) for topic in sorted(topics)):
        claims = [] if spec is None else list(_claims(spec))
        met = ((claim, taken[claim.path]) for claim in claims if claim.path in taken)
        conflicts = [conflict for claim, other in met if (conflict := other.conflict(claim)) is not None]
        problems += conflicts
        if spec is not None and not conflicts:
            for claim in claims:
                taken.setdefault(claim.path, claim)
            specs[spec.topic] = spec
    return specs, problems


def _spec_of(settings: Settings, topic: str) -> TableSpec | None:
    rule = settings.rule_of(topic)
    if rule is None:
        return None
    table = rule.table_of(topic)
    return TableSpec(topic, table, f"{table}{DEAD_LETTERS_SUFFIX}", rule, settings.registry, settings.lake.mask_secret)


def _key_bytes(settings: Settings, spec: TableSpec) -> int:
    """Bytes of the longest key that a file of these tables may have in an object store."""
    prefix = split_root(settings.lake.root).prefix
    folders = min(len(spec.rule.partition_by) * (MOST_BYTES_OF_NAME + 1), MOST_BYTES_OF_FOLDERS + 1)
    return len(f"{prefix}/".encode()) + max(len(table.encode()) for table in spec.all_tables) + folders + _FILE_BYTES


def _bad_names(settings: Settings, specs: Collection[TableSpec]) -> Iterator[str]:
    for spec in specs:
        if not is_topic_name(spec.topic):
            yield f"topic {spec.topic[:300]!r}: not a legal name, no table can be named by it: leave it out of 'topics'"
        elif any(part in ("", ".", "..") for table in spec.all_tables for part in table.split("/")):
            yield (
                f"topic '{spec.topic}': a group of pattern '{spec.rule.pattern}' gives its table an empty part, or "
                "one of dots: give the topic a rule of its own, or leave it out with 'not'"
            )
        elif len({table.lower() for table in spec.all_tables}) < len(spec.all_tables):
            which = (
                "its table and its newest_rows" if spec.latest_table is not None else "its table and one of its route"
            )
            which = which if spec.history_table is None else "two of its table, newest_rows and history"
            yield f"topic '{spec.topic}': {which} are one, '{_twice(spec.all_tables)}': give another name"
        elif split_root(settings.lake.root).scheme and (most := _key_bytes(settings, spec)) > MOST_KEY_BYTES:
            yield (
                f"topic '{spec.topic}': table '{spec.table}' and the folders of its 'partition_by' make keys of up to "
                f"{most} bytes, a store takes {MOST_KEY_BYTES}: give it a shorter path, or fewer partition columns"
            )
        elif any(len(part.encode()) > MAX_PART_BYTES for table in spec.all_tables for part in table.split("/")):
            longest = max(spec.all_tables, key=lambda table: max(map(len, table.split("/"))))
            yield (
                f"topic '{spec.topic}': table '{longest}' has a name of more than "
                f"{MAX_PART_BYTES} bytes: "
                "give the topic a rule of its own with a shorter table"
            )


@dataclass(frozen=True, slots=True)
class _Claim:
    """Table that a topic needs: what it is to hold, and of a side table or a derived one, whose it is."""

    path: str
    kind: str
    source: str
    spec: TableSpec

    def conflict(self, other: "_Claim") -> str | None:
        """Why both cannot have it; None: the topics may share it."""
        one, two = self.spec, other.spec
        if one.topic == two.topic:
            return None
        who = f"topics '{one.topic}' and '{two.topic}'"
        if (self.path, self.kind, self.source) != (other.path, other.kind, other.source):
            return f"{who}: collision in table '{other.path}': give one another table"
        if unlike := differences(one.rule, two.rule):
            return (
                f"{who} share table '{one.table}', and their rules differ in {', '.join(unlike)}: make these alike, or "
                "give one another table"
            )
        return None


def _claims(spec: TableSpec) -> Iterator[_Claim]:
    yield _Claim(spec.table, "rows", "", spec)
    yield _Claim(spec.dead_letters_table, "dead letters", "", spec)
    for path in dict.fromkeys(spec.side_tables.values()):
        yield _Claim(path, "side", spec.table, spec)
    for kind, derived in (("latest", spec.latest_table), ("history", spec.history_table)):
        if derived is not None:
            yield _Claim(derived, kind, spec.table, spec)


def _collisions(specs: Collection[TableSpec]) -> Iterator[str]:
    """Every pair that meets, once; names are compared without case, since many file systems and readers do so."""
    first: dict[tuple[str, ...], _Claim] = {}
    seen: set[tuple[str, str]] = set()
    claims = [claim for spec in specs for claim in _claims(spec)]
    for claim in claims:
        other = first.setdefault(_parts(claim.path), claim)
        pair = (other.spec.topic, claim.spec.topic)
        if pair not in seen and (conflict := other.conflict(claim)) is not None:
            seen.add(pair)
            yield conflict
    for claim in claims:
        parts = _parts(claim.path)
        for length in range(1, len(parts)):
            outer = first.get(parts[:length])
            if outer is not None and (outer.spec.topic, claim.spec.topic) not in seen:
                seen.add((outer.spec.topic, claim.spec.topic))
                yield (
                    f"topics '{outer.spec.topic}' and '{claim.spec.topic}': collision, table '{claim.path}' of the "
                    "second lies inside a table of the first: give one another table"
                )


def _twice(paths: Sequence[str]) -> str:
    lower = [path.lower() for path in paths]
    return next(path for n, path in enumerate(paths) if path.lower() in lower[n + 1 :])


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.lower().split("/"))
