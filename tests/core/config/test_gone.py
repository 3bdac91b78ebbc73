"""Settings of earlier versions: each gets one line that says what to write now."""

import pytest

from bench.weight import settings_of as names_of
from kgs_core.config import Settings
from kgs_core.config.gone import GONE


@pytest.mark.parametrize("entry", GONE)
def test_a_setting_that_is_gone_says_what_to_write_now(problems_in, with_sections, entry):
    name, _, value = entry.partition("=")
    section, _, key = name.partition(".")
    if not key:
        assert f"{name}: gone since 0.2: {GONE[entry]}" in problems_in(with_sections(more=f"{name}: {{a: 1}}"))
        return
    if section == "topics":
        opened, closed = key.replace(".", ": {"), "}" * key.count(".")
        text = f"topics: [{{topic: t, {opened}: 1{closed}}}]"
        assert f"topics[0].{key}: gone since 0.2: {GONE[entry]}" in problems_in(with_sections(topics=text))
        return
    lines = {"kafka": "bootstrap_servers: 'a:9092', ", "lake": "root: /lake, "}
    more = {
        "registry": "url: 'http://r', ",
        "catalog": "kind: unity, url: 'http://u', name: 'a.b.{table}', ",
    }
    text = f"{section}: {{{ {**lines, **more}.get(section, '') }{key}: {value or 1}}}"
    assert problems_in(with_sections(**{section: text})) == [f"{name}: gone since 0.2: {GONE[entry]}"]
    assert value or name not in set(names_of(Settings))


def test_other_values_and_unknown_keys_are_not_taken_for_gone_ones(problems_of):
    assert problems_of(packing="packing: {apply: [auto]}") == [
        "packing.apply: give auto, forced_only, or forced_only with times of day, as forced_only 07:30-20:00"
    ]
    (found,) = problems_of(lake="lake: {root: /l, comit: auto}")
    assert "gone" not in found
