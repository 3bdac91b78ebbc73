"""Text that is no configuration at all: every answer names the line or the reason, and quotes no value."""

import time

import pytest

from kgs_core.config.yaml_tree import MAX_BYTES, MAX_NODES

CANARY = "hunter2"
PLAIN = "put it in quotes, or write it as a plain number"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", "empty: start from what `kgs example` prints"),
        ("# only a comment\n", "empty: start from what `kgs example` prints"),
        ("- a\n", "must be a mapping of sections, is a list"),
        ("just text", "must be a mapping of sections, is a str"),
        ("a:\n\t- b", r"line 2: found character '\t' that cannot start any token"),
        ("group: a\nkafka: {}\ngroup: b\n", "line 3: duplicate key 'group': keep one of them"),
        ("kafka:\n  client: {a: 1, a: 2}\n", "line 2: duplicate key 'a': keep one of them"),
        ("tables: {1: a, true: b}\n", "line 1: keys 1 and true are one: keep one of them"),
        ("tables:\n  0x10: a\n  16: b\n", "line 3: keys 0x10 and 16 are one: keep one of them"),
        ("a: {010: b}", f"line 1: a number with a 0 in front is one of base 8 in YAML: {PLAIN}"),
        ("a:\n- -07", f"line 2: a number with a 0 in front is one of base 8 in YAML: {PLAIN}"),
        ("a: {12:30: b}", f"line 1: a number with colons is one of base 60 in YAML: {PLAIN}"),
        ('a: {"x\\ud800": b}', "line 1: a text with half a character (\\ud800 to \\udfff): write the whole character"),
        ("a: [", "line 1: expected the node content, but found '<stream end>'"),
        ("--- a\n--- b\n", "line 2: but found another document"),
        ("{[1]: 2}", "line 1: found unhashable key"),
        ("a: \x00", "special characters are not allowed"),
        ("a: 2026-02-31", "a value looks like a date or a number and is none: put it in quotes"),
        ("a: " + "9" * 5000, "a value looks like a date or a number and is none: put it in quotes"),
        ("a: &x [*x]", "line 1: an alias without its anchor: put a value that begins with '*' in quotes"),
        ("a: " + "[" * 30, "line 1: nested deeper than 20"),
        (b"group: \xff", "byte 7 is not UTF-8: save the file as UTF-8"),
    ],
)
def test_text_that_is_no_configuration(problems_in, text, answer):
    assert problems_in(text) == [answer]


def test_python_tags_are_refused_and_construct_nothing(problems_in, tmp_path):
    made = tmp_path / "made"
    text = f"group: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{made}]]"
    assert problems_in(text) == ["line 1: tags are not allowed: put a value that begins with '!' in quotes"]
    assert not made.exists()


def test_nested_aliases_are_counted_as_written_out(problems_in):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    began = time.monotonic()
    assert problems_in("\n".join(rows)) == [f"line 5: more than {MAX_NODES} values (aliases written out)"]
    assert time.monotonic() - began < 2


def test_aliases_and_merge_keys_in_small_numbers_are_fine(problems_of):
    topics = "topics:\n- &raw {topic: a, format: raw}\n- {<<: *raw, topic: b}"
    assert problems_of(topics=topics) == []


def test_a_mebibyte_is_the_limit(problems_of, problems_in, with_sections):
    assert problems_in(b"#" * (MAX_BYTES + 1)) == [f"larger than {MAX_BYTES} bytes: a configuration is not"]
    text = with_sections()
    assert problems_in(text + "\n#" + "x" * (MAX_BYTES - len(text) - 2)) == []


def test_a_byte_order_mark_is_no_mistake(problems_in, with_sections):
    assert problems_in(b"\xef\xbb\xbf" + with_sections().encode()) == []


@pytest.mark.parametrize("value", ["!{}", "!{}!x y", "*{}", "@{}", "%{}", "'{}", '"\\{}', "[{}", "a: {}", "`{}", "|{}"])
def test_an_unquoted_password_is_never_quoted_back(problems_in, value):
    found = problems_in("kafka:\n  client:\n    sasl.password: " + value.format(CANARY))
    assert found
    assert CANARY not in "\n".join(found)
