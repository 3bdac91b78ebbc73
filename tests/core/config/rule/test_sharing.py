"""Rules whose topics share a table: refused where what concerns the table is not said alike."""

import pytest

from kgs_core.config.rule.sharing import may_be_shared


def rules(*more):
    return "topics: [" + ", ".join(f"{{topic: t{n}, table: x, {each}}}" for n, each in enumerate(more)) + "]"


@pytest.mark.parametrize(
    ("one", "other", "unlike"),
    [
        ("format: raw", "format: string", "format (column value)"),
        ("format: json, schema: {a: int}", "format: json, schema: {a: long}", "schema (column a)"),
        ("format: json, schema: {a: int}", "format: json, schema: {a: int, b: int}", "schema (column b)"),
        ("rows: filter", "rows: one_to_one", "rows"),
        ("evolve: none, format: json, schema: {a: int}", "evolve: widen, format: json, schema: {a: int}", "evolve"),
        ("partition_by: ['day(_timestamp)']", "partition_by: []", "partition_by"),
        ("headers: {a: x}", "headers: {b: x}", "headers"),
        ("key_format: string", "key_format: raw", "key_format, key_schema and key_prefix"),
        ("topic_column: topic", "topic_column: name", "topic_column"),
        ("description: one", "comments: {value: bytes}", "description, comments"),
        ("newest_rows: {table: y}", "rows: one_to_one", "newest_rows"),
        (
            "newest_rows: {table: y, deletes: ignore}, format: json, schema: {value: binary}",
            "newest_rows: {table: y, deletes: ignore}, format: raw",
            "format (of a table with newest_rows)",
        ),
    ],
)
def test_rules_that_do_not_agree(problems_of, one, other, unlike):
    assert problems_of(topics=rules(one, other)) == [
        f"topics[1].table: 'x' is also the table of topics[0], and they differ in {unlike}: make these alike, or name "
        "another table"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("headers: {a: x}", "headers: {a: y}"),
        ("on_error: stop, start: latest", "on_error: dead_letter"),
        ("format: json, schema: {a: int, b: date}", "format: json, schema: {b: date, a: int}"),
        (
            "evolve: add_columns, format: json, schema: {a: int, b: date}",
            "evolve: add_columns, format: json, schema: {b: date, c: string}",
        ),
        ("transform_arrow: 'm:f'", "format: json, schema: {a: int}"),
    ],
)
def test_rules_that_agree_in_what_concerns_the_table(problems_of, one, other):
    assert problems_of(topics=rules(one, other)) == []


@pytest.mark.parametrize(
    ("latest", "more", "is_refused"),
    [
        ("{table: y}", "", True),
        ("{table: y, key: [value], deletes: ignore}", "topic_column: name, ", True),
        ("{table: y, order: timestamp}", "", False),
        ("{table: y, key: [_key, name], deletes: ignore}", "topic_column: name, ", False),
    ],
)
def test_offsets_of_two_topics_are_not_compared(problems_of, latest, more, is_refused):
    both = [f"{more}newest_rows: {latest}"] * 2
    refusal = (
        "topics[1].newest_rows: 'x' is also the table of topics[0], and offsets of two topics cannot be compared: "
        "set order: timestamp, or put the topic_column into the key"
    )
    assert problems_of(topics=rules(*both)) == ([refusal] if is_refused else [])


def test_types_are_compared_where_columns_are_added(problems_of):
    one, other = (
        f"evolve: add_columns, format: json, schema: {{a: {kind}, {kind[0]}: int}}" for kind in ("int", "date")
    )
    (problem,) = problems_of(topics=rules(one, other))
    assert "differ in schema (column a)" in problem


@pytest.mark.parametrize(
    ("others", "shared"),
    [
        ("{topic: a, table: x}", False),
        ("{topic: a, table: x}, {topic: b, table: X}", True),
        ("{topic: a, table: x}, {topic: b, table: xy}", False),
        ("{topic: a, table: x/t}, {pattern: 'b.*', table: 'x/{topic}'}", True),
        ("{topic: a, table: y/t}, {pattern: 'b.*', table: 'x/{topic}'}", False),
        ("{pattern: 'b.*', table: 'x/{topic}'}, {pattern: 'c.*', table: 'x/{topic}'}", False),
        ("{pattern: 'b.*', table: x}", True),
        ("{pattern: '(?P<g>b+).*', table: 'x/{g}'}", True),
    ],
)
def test_which_tables_may_have_several_topics(settings_of, others, shared):
    topics = settings_of(topics=f"topics: [{others}]").topics
    assert may_be_shared(topics[0], topics) is shared
