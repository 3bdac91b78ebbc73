"""Topics to tables: nothing may land in another's table, or inside it."""

import sys

import pytest

from kgs_core.config.tables import TableSpec, resolve_tables
from kgs_core.errors import ConfigError


@pytest.fixture
def resolve(settings_of):
    def call(rules, *topics):
        return resolve_tables(settings_of(topics=f"topics: [{rules}]"), topics)

    return call


@pytest.fixture
def collisions(resolve):
    def call(rules, *topics):
        with pytest.raises(ConfigError) as caught:
            resolve(rules, *topics)
        return list(caught.value.problems)

    return call


def test_every_topic_that_a_rule_fits_has_its_tables(settings_of):
    settings = settings_of(topics="topics: [{topic: b, table: other/b}, {pattern: '[ab].*', table: 'bronze/{topic}'}]")
    exact, pattern = settings.topics
    assert resolve_tables(settings, {"ba", "b", "c", "a.x"}) == {
        "a.x": TableSpec("a.x", "bronze/a.x", "bronze/a.x_dead_letters", pattern),
        "b": TableSpec("b", "other/b", "other/b_dead_letters", exact),
        "ba": TableSpec("ba", "bronze/ba", "bronze/ba_dead_letters", pattern),
    }


@pytest.mark.parametrize(
    ("rules", "topics", "tables"),
    [
        ("{pattern: '.*'}", "c a b a", {"a": "a", "b": "b", "c": "c"}),
        ("{topic: later}", "", {}),
        ("{topic: later}, {topic: now}", "now", {"now": "now"}),
        ("{pattern: '.*'}", "t __consumer_offsets kgs.g.consumer.metadata", {"t": "t"}),
        ("{pattern: '.*'}", "a.b a_b", {"a.b": "a.b", "a_b": "a_b"}),
        ("{topic: a, table: x}, {topic: b, table: xy}, {topic: c, table: z/x}", "a b c",
         {"a": "x", "b": "xy", "c": "z/x"}),
        ("{pattern: 'a.*', not: ab}, {pattern: '.*', table: 'rest/{topic}'}", "aa ab c",
         {"aa": "aa", "ab": "rest/ab", "c": "rest/c"}),
        (r"{pattern: '(?P<team>[a-z]+)\.(?P<what>.+)', not: ['.*\.test', 'legacy\..*'], table: 'b/{team}/{what}'}",
         "ads.clicks ads.clicks.eu ads.clicks.test legacy.old Odd.one",
         {"ads.clicks": "b/ads/clicks", "ads.clicks.eu": "b/ads/clicks.eu"}),
    ],
    ids=[
        "by name, whatever came in", "a topic that does not exist yet", "or one of two", "internal topics are left out",
        "dots and underscores keep apart", "names that only begin alike", "a later rule takes what one leaves out",
        "named by parts of the topic",
    ],
)  # fmt: skip
def test_which_topic_has_which_table(resolve, rules, topics, tables):
    assert [(topic, spec.table) for topic, spec in resolve(rules, *topics.split()).items()] == [*tables.items()]


def test_topics_that_come_into_one_table_by_a_pattern_and_do_not_agree(collisions):
    pattern = "{pattern: '(?P<g>[b-z])', table: 'x/{g}', rows: any, partition_by: ['day(_timestamp)']}"
    rules = f"{{topic: a, table: x/t}}, {pattern}"
    assert collisions(rules, "a", "t") == [
        "topics 'a' and 't' share table 'x/t', and their rules differ in rows, partition_by: make these alike, or give "
        "one another table"
    ]


@pytest.mark.parametrize(
    ("more", "one", "other", "table"),
    [
        ("newest_rows: {table: latest}", "a", "b", "latest"),
        ("newest_rows: {table: 'l/{topic}', history: all}", "a", "b", "all"),
        ("table: 'x/{topic}'", "Flights", "flights", "x/flights"),
    ],
    ids=["a derived table of two tables", "a history of two tables", "names that differ only in case"],
)
def test_two_topics_that_collide(collisions, more, one, other, table):
    assert collisions(f"{{pattern: '.*', {more}}}", one, other) == [
        f"topics '{one}' and '{other}': collision in table '{table}': give one another table"
    ]


@pytest.mark.parametrize("dead_letters", ["a_dead_letters", "A_dead_letters"])
def test_a_table_that_is_anothers_dead_letter_table(collisions, dead_letters):
    (found,) = collisions("{pattern: '.*'}", "a", dead_letters)
    assert "'a'" in found
    assert f"'{dead_letters}'" in found
    assert "collision in table" in found


@pytest.mark.parametrize("inner", ["x/b", "X/c/d", "x_dead_letters/b", "x/_".replace("_", "y")])
def test_a_table_inside_another(collisions, inner):
    assert collisions(f"{{topic: a, table: x}}, {{topic: b, table: {inner}}}", "a", "b") == [
        f"topics 'a' and 'b': collision, table '{inner}' of the second lies inside a table of the first: "
        "give one another table"
    ]


def test_a_table_inside_another_is_found_in_either_order(collisions):
    (found,) = collisions("{topic: a, table: x/y}, {topic: b, table: x}", "a", "b")
    assert found.startswith("topics 'b' and 'a': collision, table 'x/y' of the second")


def test_all_collisions_come_together(collisions):
    rules = "{topic: a, table: x}, {topic: b, table: X}, {topic: c, table: x/y}, {topic: d, table: z}"
    found = collisions(rules, "a", "b", "c", "d")
    assert [problem.split(":")[0] for problem in found] == ["topics 'a' and 'b'", "topics 'a' and 'c'"]


def test_a_name_too_long_for_a_folder_says_how_to_mend_it(collisions, resolve):
    (found,) = collisions("{pattern: 'x+'}", "x" * 249)
    assert found.endswith("give the topic a rule of its own with a shorter table")
    assert resolve(f"{{topic: {'x' * 249}, table: short}}", "x" * 249)


@pytest.mark.parametrize("topic", ["..", "a/b", "../../etc", "a\0", ""])
def test_a_name_that_kafka_would_not_allow_makes_no_path(collisions, topic):
    (found,) = collisions("{pattern: '(?s).*'}", topic)
    assert "not a legal name" in found


def steps_of(call):
    """Lines of Python that a call takes, which unlike its time is the same on a busy machine."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_ten_times_the_topics_take_ten_times_the_work(resolve):
    """A collision is looked for among all pairs of topics, of which there are a hundred times as many."""

    def resolved(count):
        topics = [f"topic-{number}" for number in range(count)]
        assert len(resolve("{pattern: '.*', table: 'a/b/{topic}'}", *topics)) == count

    few, many = steps_of(lambda: resolved(100)), steps_of(lambda: resolved(1000))
    assert few > 100
    assert many < 15 * few


@pytest.mark.parametrize("topic", ["a", "a..", "a..."])
def test_a_group_that_makes_no_folder_is_named_with_its_topic(settings_of, topic):
    settings = settings_of(topics=r"topics: [{pattern: 'a(\.(?P<rest>.+))?', table: 'b/{rest}'}]")
    with pytest.raises(
        ConfigError, match=f"topic '{topic}': a group of pattern .* gives its table an empty part, or one"
    ):
        resolve_tables(settings, [topic])


def test_a_derived_table_that_a_group_makes_the_table_itself_is_refused(settings_of):
    rule = "{pattern: '(?P<a>.)(?P<b>.)', table: 't/{a}', newest_rows: {table: 't/{b}'}}"
    assert list(resolve_tables(settings_of(topics=f"topics: [{rule}]"), ["xy"])) == ["xy"]
    with pytest.raises(ConfigError, match="topic 'xX': its table and its newest_rows are one, 't/x'"):
        resolve_tables(settings_of(topics=f"topics: [{rule}]"), ["xX"])
    rule = "{pattern: '(?P<a>.)(?P<b>.)', table: t, newest_rows: {table: 'n/{a}', history: 'n/{b}'}}"
    with pytest.raises(ConfigError, match="topic 'xX': two of its table, newest_rows and history are one, 'n/x'"):
        resolve_tables(settings_of(topics=f"topics: [{rule}]"), ["xX"])


@pytest.mark.parametrize(("room", "columns"), [(954, 0), (713, 1), (472, 2), (231, 3), (213, 4)])
def test_a_path_that_leaves_folders_no_room_in_a_key_of_s3_is_refused(settings_of, room, columns):
    by = ", ".join("abcd"[:columns])
    rules = f"topics: [{{topic: t, format: string, partition_by: [{by}], table: 'a/{{topic}}'}}]"

    def problems(root):
        try:
            resolve_tables(settings_of(topics=rules, lake=f"lake: {{root: '{root}'}}"), ["t"])
        except ConfigError as e:
            return e.problems
        return []

    fits = "/".join(["x" * 100] * 10)[: room - len("/a/t_dead_letters")]
    assert problems(f"s3://bucket/{fits}") == []
    (told,) = problems(f"s3://bucket/{fits}x")
    assert "keys of up to 1025 bytes, a store takes 1024" in told
    assert problems(f"/{fits}x") == []
