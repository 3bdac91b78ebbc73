"""Rules with a route: what they must say, and the tables that they lead to."""

import pytest
from pydantic import ValidationError

from kgs_core.config import parse_settings, resolve_tables
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.settings import config_hash
from kgs_core.errors import ConfigError

SCHEMA = {"kind": "string", "n": "int", "ok": "boolean", "x": "double"}
TEXT = """
group: g
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: lake}}
topics: [{topics}]
"""


def rule(tables, column="kind", **more):
    route = {"column": column, "tables": tables}
    found = {"topic": "events", "table": "bronze/events", "format": "json", "schema": SCHEMA, "route": route, **more}
    return TopicRule.model_validate(found)


def settings_of(*topics):
    return parse_settings(TEXT.format(topics=", ".join(topics)).encode(), "kgs.yaml", {})


def entry(tables, topic="topic: events", table="bronze/events"):
    route = f"route: {{column: kind, tables: {tables}}}"
    return f"{{{topic}, table: {table}, format: json, schema: {{kind: string}}, {route}}}"


@pytest.mark.parametrize(
    ("column", "tables", "found"),
    [
        (
            "kind",
            {"order": "bronze/orders", "click": "bronze/clicks"},
            {"order": "bronze/orders", "click": "bronze/clicks"},
        ),
        ("n", {1: "one", -5: "five"}, {"1": "one", "-5": "five"}),
        ("ok", {True: "good", False: "bad"}, {"true": "good", "false": "bad"}),
        (
            "kind",
            {"order": "{topic}_orders", "refund": "{topic}_orders"},
            dict.fromkeys(("order", "refund"), "events_orders"),
        ),
    ],
)
def test_values_lead_to_tables(column, tables, found):
    assert rule(tables, column).side_tables_of("events") == found
    assert rule(tables, column, route=None).side_tables_of("events") == {}


@pytest.mark.parametrize(
    ("column", "tables", "problem"),
    [
        ("nix", {"a": "b"}, "route: there is no column 'nix'; there are kind, n, ok, x"),
        ("x", {"a": "b"}, "route: column 'x' is double: take one of text, whole numbers or booleans"),
        ("kind", {1: "b"}, "value 1 is not a text: put it in quotes"),
        ("kind", {True: "b"}, "value true is not a text: put it in quotes"),
        ("n", {"1": "b"}, "value 1 is not a whole number"),
        ("n", {True: "b"}, "value true is not a whole number"),
        ("ok", {"true": "b"}, "value true is not true or false"),
        ("kind", {}, "give each value its table"),
        ("kind", {"a": "b c"}, "value a: its table has characters beside"),
        ("kind", {"a": "../b"}, "value a: its table must be a relative path"),
        ("kind", {"a": 7}, "value a: its table has characters beside"),
        ("kind", {1.5: "b"}, "value 1.5: give a text, a whole number, true or false"),
        ("kind", {"a": "bronze/Events"}, "route: table 'bronze/Events' is the rule's own"),
        ("kind", {"a": "bronze/events_dead_letters"}, "is the rule's own"),
        ("kind", {"a": "orders", "b": "Orders"}, "route: tables 'orders' and 'Orders' differ only in case"),
        ("kind", {"a": "{team}/orders"}, "{team}: neither {topic} nor a group"),
    ],
)
def test_a_route_that_cannot_be_is_refused_in_words(column, tables, problem):
    with pytest.raises(ValidationError) as e:
        rule(tables, column)
    assert problem in str(e.value)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"newest_rows": {"table": "gold"}},
            "route: a derived table has the rows of one table: drop 'newest_rows'",
        ),
        ({"rows": "any"}, "route: with rows: any a missing row"),
        ({"format": "raw", "schema": None}, "route: there is no column 'kind'; there are value"),
    ],
)
def test_what_a_route_does_not_go_with(more, problem):
    with pytest.raises(ValidationError) as e:
        rule({"a": "b"}, **more)
    assert problem in str(e.value)


def test_columns_that_only_a_transform_or_a_registry_knows_are_left_to_the_start_of_consumers():
    assert rule({"a": "b"}, "made", transform_arrow="module:function")
    assert rule({"a": "b"}, "made", format="avro", schema=None)
    assert rule({"a": "b"}, "key", key_format="string")


@pytest.mark.parametrize(
    "topics",
    [
        (entry("{a: bronze/orders}"), "{topic: orders, table: bronze/orders}"),
        ("{topic: orders, table: bronze/Orders}", entry("{a: bronze/orders}")),
        (entry("{a: side}"), entry("{a: side}", "topic: other", "bronze/other")),
    ],
)
def test_a_side_table_that_is_another_rules_is_refused(topics):
    with pytest.raises(ConfigError, match=r"topics\[\d\]\.route: '.*' is also a table of topics\[\d\]"):
        settings_of(*topics)


def test_topics_of_one_pattern_have_side_tables_of_their_own():
    pattern = "pattern: '(?P<team>[a-z]+)-.*'"
    specs = resolve_tables(settings_of(entry("{a: '{team}/{topic}_a'}", pattern, "'{topic}'")), ["x-1", "y-1"])
    assert [spec.all_tables for spec in specs.values()] == [
        ("x-1", "x-1_dead_letters", "x/x-1_a"),
        ("y-1", "y-1_dead_letters", "y/y-1_a"),
    ]
    with pytest.raises(ConfigError, match="collision in table 'side'"):
        resolve_tables(settings_of(entry("{a: side}", pattern, "'{topic}'")), ["x-1", "y-1"])
    with pytest.raises(ConfigError, match="its table and one of its route are one"):
        resolve_tables(settings_of(entry("{a: x-1}", pattern, "'{topic}'")), ["x-1"])


def test_topics_that_share_their_own_table_share_its_side_tables_and_must_have_one_route():
    pattern = entry("{a: side}", "pattern: 'x.*'", "bronze/all")
    assert len(resolve_tables(settings_of(pattern), ["x1", "x2"])) == 2
    with pytest.raises(ConfigError, match="differ in route"):
        settings_of(pattern, entry("{b: side}", "topic: y", "bronze/all"))


def test_the_hash_of_the_configuration_tells_routes_apart():
    hashes = {config_hash(settings_of(entry(each))) for each in ("{a: s}", "{b: s}", "{a: t}")}
    assert len(hashes) == 3
