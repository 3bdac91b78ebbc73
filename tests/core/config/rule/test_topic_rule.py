"""Which topics a rule may name, and which tables it may make of them."""

import pytest

from kgs_core.config.rule.field_types import FIELD_TYPES
from kgs_core.config.rule.start import start_timestamp_ms
from kgs_core.config.rule.value_formats import FORMATS


def rules(*texts):
    return "topics: [" + ", ".join(texts) + "]"


@pytest.mark.parametrize(
    ("topics", "answer"),
    [
        ("[]", "topics: the list is empty; name at least one topic or pattern"),
        ("null", "topics: null: give a list"),
        ("t", "topics: 't': give a list"),
        ("{topic: t}", "topics: give a list"),
        ("[t]", "topics[0]: 't': give a mapping of key: value"),
        ("[{}]", "topics[0]: give either 'topic' or 'pattern'"),
        ("[{topic: t, pattern: t}]", "topics[0]: give either 'topic' or 'pattern'"),
    ],
)
def test_wrong_lists_of_topics_get_one_answer(problems_of, topics, answer):
    assert problems_of(topics=f"topics: {topics}") == [answer]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "'a b'", "''", "ä", "x" * 250, "'a\\nb'"])
def test_illegal_topic_names(problems_of, name):
    (found,) = problems_of(topics=rules(f"{{topic: {name}}}"))
    assert found.startswith("topics[0].topic: ")
    assert found.endswith("not a legal topic name; use 1 to 249 of a-z A-Z 0-9 . _ -")


def test_the_longest_topic_name_is_legal(problems_of):
    assert problems_of(topics=rules(f"{{topic: {'x' * 249}}}")) == []


@pytest.mark.parametrize("pattern", ["(a", "[a", "a{2,1}", "(?=a)", "(?P<x>a", "*", r"\1"])
def test_invalid_patterns_say_why_and_print_nothing(problems_of, capfd, pattern):
    (found,) = problems_of(topics=rules(f"{{pattern: '{pattern}'}}"))
    assert found.startswith(f"topics[0].pattern: '{pattern}': not a valid RE2 pattern: ".replace("\\", "\\\\"))
    assert capfd.readouterr() == ("", "")


def test_an_empty_pattern_is_refused(problems_of):
    assert problems_of(topics=rules("{pattern: ''}")) == [
        "topics[0].pattern: '': an empty pattern matches no topic; write .* for all of them"
    ]


def test_a_pattern_that_would_backtrack_for_ever_takes_no_time(settings_of):
    settings = settings_of(topics=rules("{pattern: '(a+)+$'}"))
    assert settings.rule_of("a" * 248 + "!") is None
    assert settings.rule_of("a" * 249) is settings.topics[0]


def test_a_pattern_must_match_the_whole_name(settings_of):
    settings = settings_of(topics=rules("{pattern: 'a.'}"))
    assert settings.rule_of("ab") is settings.topics[0]
    assert settings.rule_of("abc") is None


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__x", "kgs.g.monitor.writeSpeed"])
def test_internal_topics_are_never_read(settings_of, problems_of, topic):
    assert settings_of(topics=rules("{pattern: '.*'}")).rule_of(topic) is None
    assert problems_of(topics=rules("{topic: t}", f"{{topic: {topic}}}")) == [
        f"topics[1].topic: '{topic}' belongs to Kafka or kgs and is never read: remove the rule"
    ]


def test_other_groups_topics_are_ordinary(settings_of):
    assert settings_of(topics=rules("{pattern: '.*'}")).rule_of("kgs.other.monitor.writeSpeed")


def test_the_first_rule_that_fits_counts(settings_of):
    settings = settings_of(topics=rules("{topic: ab}", "{pattern: 'a.*'}", "{pattern: '.*'}"))
    assert [settings.topics.index(settings.rule_of(topic)) for topic in ("ab", "ac", "b")] == [0, 1, 2]


@pytest.mark.parametrize("first", ["{topic: ab}", "{pattern: 'a.*'}"])
def test_a_rule_that_can_never_count_is_a_mistake(problems_of, first):
    assert problems_of(topics=rules(first, "{topic: ab}")) == [
        "topics: topics[1] is never used, topics[0] fits 'ab' already: remove one, or put the exact name first"
    ]


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("table: '{x}'", "[0]: table '{x}': {x}: neither {topic} nor a group (?P<name>...) of 'pattern'"),
        ("table: /abs", "[0].table: '/abs': must be a relative path without empty, '.', '..' or '_...' parts"),
        ("table: a/../b", "[0].table: 'a/../b': must be a relative path without empty, '.', '..' or '_...' parts"),
        ("table: a/_log", "[0].table: 'a/_log': must be a relative path without empty, '.', '..' or '_...' parts"),
        ("table: 'a{'", "[0].table: 'a{': only {topic}, and {name} of a group of 'pattern', may stand in braces"),
        ("not: b.*", "[0]: 'not' leaves topics out of a 'pattern': drop it"),
        (
            "table: 'a b'",
            "[0].table: 'a b': use A-Z a-z 0-9 . _ - / and {topic}, or {name} of a group of 'pattern'",
        ),
        ("format: json", "[0]: format 'json' needs a 'schema' of field: type: `kgs schema topic "
         "TOPIC` proposes one"),
        ("keep: 30", "[0].keep: 30: write a number of days or hours, as 30 days"),
        ("keep: 0 days", "[0].keep: '0 days': write a number of days or hours, as 30 days"),
        ("keep: 1 month", "[0].keep: '1 month': write a number of days or hours, as 30 days"),
        ("rows: some", "[0].rows: 'some': give one of 'one_to_one', 'filter' or 'any'"),
        ("on_error: skip", "[0].on_error: 'skip': give one of 'dead_letter' or 'stop'"),
        ("format: json, schema: {a: strin}", "[0].schema.a: 'strin': 'strin' is not a type (did you mean 'string'?); "
         f"give one of {' '.join(FIELD_TYPES)}"),
        ("format: json, schema: {a: 'array<int'}", "[0].schema.a: 'array<int': wanted '>' at its end "
         "(within {} YAML ends a text at a comma: put the type in quotes)"),
        ("format: json, schema: {a: {b: {c: varchar}}}", "[0].schema.a: field b: field c: 'varchar' is not a type of a "
         "column: write string"),
        ("format: json, schema: {a: [int]}", "[0].schema.a: give a type in text, as long or array<string>, or a "
         "mapping of field: type"),
        ("format: json, schema: {a: {1: int}}", "[0].schema.a: 1: keys are text: put it in quotes"),
        ("format: json, schema: {a: {b: {}}}", "[0].schema.a: field b: a struct needs a field, as struct<a:string>; "
         "for fields of any name: map<string,string>"),
        ("format: json, schema: {a: 'array<map<int,int>>'}", "[0]: column a: the keys of a JSON object are texts: "
         "write map<string,...>"),
        ("key_format: json", "[0]: key_format 'json' needs a 'key_schema' of field: type"),
        ("key_schema: {a: int}", "[0]: key_format 'raw' takes no 'key_schema'; say key_format: json, or drop the "
         "key_schema"),
        ("key_format: json, key_schema: {a: int}, key_prefix: _k", "[0]: key_prefix '_k': columns must not be empty or "
         "begin with '_' (kgs adds such columns)"),
        ("key_format: string, headers: {Key: trace}", "[0]: of schema, key, headers and topic, two fields differ only "
         "in case, which many readers of Delta cannot tell apart: change 'key_prefix', 'topic_column', or the header's "
         "column"),
        ("headers: {value: trace}", "[0]: of schema, key, headers and topic, two fields are named value: change "
         "'key_prefix', 'topic_column', or the header's column"),
        ("topic_column: _topic", "[0]: topic_column '_topic': must not be empty or begin with '_' (kgs adds such "
         "columns)"),
        ("headers: {_trace: trace}", "[0].headers: field '_trace': names must not be empty or begin with '_' (kgs adds "
         "such columns)"),
        ("unknown_fields: rescue", "[0]: format 'raw' keeps no fields without a column: drop 'unknown_fields'"),
        (
            "format: avro, unknown_fields: rescue",
            "[0]: format 'avro' keeps no fields without a column: drop 'unknown_fields'",
        ),
        ("format: json, schema: {_a: int}", "[0].schema: field '_a': names must not be empty or begin with '_' (kgs "
         "adds such columns)"),
        ("format: json, schema: {a: int, A: int}", "[0].schema: two fields differ only in case, which many readers of "
         "Delta cannot tell apart"),
        ("transform: f", "[0].transform: 'f': write module:function"),
        ("transform: 'm:f', transform_arrow: 'm:g'", "[0]: give 'transform' (DataFrame) or 'transform_arrow' (Arrow "
         "table), not both"),
        ("start: yesterday", "[0].start: 'yesterday': must be earliest, latest, committed or "
         "timestamp:2026-01-31T00:00:00Z (with its offset)"),
        ("start: 'timestamp:2026-01-31T00:00:00'", "[0].start: 'timestamp:2026-01-31T00:00:00': must be earliest, "
         "latest, committed or timestamp:2026-01-31T00:00:00Z (with its offset)"),
        ("start: 'timestamp:1969-12-31T23:59:59Z'", "[0].start: 'timestamp:1969-12-31T23:59:59Z': a timestamp before "
         "1970 is not possible; say earliest"),
    ],
)  # fmt: skip
def test_wrong_rules(problems_of, rule, answer):
    assert problems_of(topics=rules(f"{{topic: t, {rule}}}")) == [f"topics{answer}"]


def test_a_format_takes_a_schema_or_does_not(problems_of):
    *others, last = map(repr, FORMATS)
    answer = f"topics[0].format: 'nonsense': give one of {', '.join(others)} or {last}"
    assert problems_of(topics=rules("{topic: t, format: nonsense}")) == [answer]
    with_schema = " or ".join(name for name, each in FORMATS.items() if each.columns is None)
    answer = f"topics[0]: format 'raw' takes no 'schema'; say format: {with_schema}, or drop the schema"
    assert problems_of(topics=rules("{topic: t, schema: {a: int}}")) == [answer]


def test_all_topics_of_a_pattern_may_come_into_one_table(problems_of):
    assert problems_of(topics=rules("{pattern: '.*', table: all, topic_column: topic}")) == []


def test_a_start_instant_is_exact_to_the_millisecond():
    assert start_timestamp_ms("timestamp:1970-01-01T00:00:00Z") == 0
    assert start_timestamp_ms("timestamp:2026-01-31T01:00:00.123+01:00") == 1_769_817_600_123


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.columns is not None])
@pytest.mark.parametrize(
    ("latest", "words"),
    [
        ("key: [id], deletes: ignore", "newest_rows: key: no column id of value, key or headers"),
        ("key: [value, value], deletes: ignore", "key: value, value: a column stands there twice"),
        ("key: [id], changes: canal", "newest_rows: changes are read of fields, and format '{}' has none"),
    ],
)
def test_newest_rows_that_a_format_cannot_have_are_refused_as_the_rule_is_read(problems_of, name, latest, words):
    (found,) = problems_of(topics=rules(f"{{topic: t, format: {name}, newest_rows: {{table: l, {latest}}}}}"))
    assert words.format(name) in found
    plain = f"{{topic: t, format: {name}, newest_rows: {{table: l, key: [value], deletes: ignore}}}}"
    assert problems_of(topics=rules(plain)) == []


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.takes_null])
def test_tombstones_that_a_transform_would_hide_are_refused(problems_of, name):
    rule = f"{{topic: t, format: {name}, transform: 'm:f', newest_rows: {{table: l, deletes: %s}}}}"
    answer = "newest_rows: after a transform no row tells that its value was null: deletes: ignore"
    assert problems_of(topics=rules(rule % "remove")) == [f"topics[0]: {answer}"]
    assert problems_of(topics=rules(rule % "ignore")) == []


def test_a_key_of_a_rule_is_no_secret(problems_of):
    rule = "topics: [{{topic: t, {}}}]"
    assert problems_of(topics=rule.format("newest_rows: {table: x, key: id}")) == [
        "topics[0].newest_rows.key: 'id': give a list"
    ]
    assert problems_of(topics=rule.format("newest_rows: {table: x, key: []}")) == [
        "topics[0].newest_rows.key: give one at least"
    ]
    assert problems_of(topics=rule.format("key_format: jsom"))[0].startswith("topics[0].key_format: 'jsom': give one")
    assert "password" not in problems_of(topics=rule.format("format: [password]"))[0]


def test_a_history_needs_all_rows(problems_of):
    (found,) = problems_of(topics=rules("{topic: t, keep: 30 days, newest_rows: {table: l, history: h}}"))
    assert "newest_rows: history: it is made of all rows, of which 'keep' ends some: drop one of them" in found


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("changes: debezium", "changes need the columns of a key: give key: [id], or key_format and key_schema"),
        ("order: source", "only Debezium's events say their place in the source: set order: offset, or timestamp"),
        ("changes: debezium, key: [a], order: source", "compares deletes too, so they must stay: set deletes: column"),
        ("history: L", "newest_rows: table 'L' is the rule's own: give it another name"),
        ("types: {a: date}", "types are of events: say their producer (changes), or drop types"),
        ("key: [a], deletes: column", "a tombstone has no value, so no field to recognise it by: set key: [_key]"),
    ],
)
def test_parts_of_newest_rows_fit_together(problems_of, section, problem):
    (found,) = problems_of(topics=rules(f"{{topic: t, newest_rows: {{table: l, {section}}}}}"))
    assert problem in found
