"""Who may join or read beside a controlled group: asked of its topics, which only a broker has."""

from dataclasses import replace

import pytest

from kgs_core.errors import ConfigError
from kgs_core.group.controller.terms import terms_of
from kgs_core.group.membership.share import parse_share
from kgs_core.group.protocol import RunState, Terms
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.terms import refuse_controlled_group, refuse_other_terms
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import ConsumerId
from kgs_core.runtime.static_consumer import StaticConsumer
from kgs_core.system.shutdown import StopFlag
from tests.system.group_topics import DESIRED, Group, group_on, settings_of, target

TERMS = Terms("/nowhere", 30.0, ())
SAID = replace(target(), terms=TERMS)


@pytest.fixture
def group(kafka, topic_prefix):
    with group_on(kafka.bootstrap_servers, f"{topic_prefix}g") as group:
        yield group


def put(group: Group, *targets) -> None:
    writer = group.writer()
    for each in targets:
        writer.write(each, (), ())


def test_joining_with_the_groups_terms_or_where_none_are_given(group):
    refuse_other_terms(group.topics, ConsumerId(1))
    put(group, target())
    refuse_other_terms(group.topics, ConsumerId(1))
    put(group, replace(SAID, terms=replace(TERMS, lake_root="/old")), SAID)
    refuse_other_terms(group.topics, ConsumerId(1))
    put(group, replace(SAID, terms=terms_of(group.settings)))
    refuse_other_terms(group.topics, ConsumerId(1))


def test_joining_with_others_is_refused_and_says_all_that_differs(group):
    put(group, SAID, replace(SAID, terms=Terms("/lake", 25.0, ())))
    with pytest.raises(ConfigError) as refused:
        refuse_other_terms(group.topics, ConsumerId(2))
    lake, limit = refused.value.problems
    assert "runs with lake.root /lake, this configuration says /nowhere" in lake
    assert "runs with membership.suspect_after_s 25, this configuration says 30" in limit
    put(group, replace(SAID, terms=replace(TERMS, config_hashes=("0123456789", "abcdef"))))
    with pytest.raises(ConfigError, match=r"runs with configuration 01234567, abcdef, this is .*kgs replace"):
        refuse_other_terms(group.topics, ConsumerId(2))


def test_a_fixed_share_beside_a_controller_is_refused_unless_the_group_is_stopped(group, tmp_path):
    refuse_controlled_group(group.settings, group.admin)
    put(group, SAID)
    lake = group.settings.lake.model_copy(update={"root": str(tmp_path)})
    settings = group.settings.model_copy(update={"lake": lake})
    with pytest.raises(ConfigError, match="leave out --share to join it"):
        StaticConsumer(settings, ConsumerId(1), parse_share("1/1")).run(StopFlag())
    for state, is_refused in ((RunState.PAUSED, True), (RunState.STOPPED, False)):
        key, value = encode(replace(DESIRED, state=state))
        group.produce(GroupTopic.OPERATOR, 0, (key, value))
        if is_refused:
            with pytest.raises(ConfigError, match="kgs stop"):
                refuse_controlled_group(settings, group.admin)
        else:
            refuse_controlled_group(settings, group.admin)


def test_a_group_without_topics_has_no_controller(kafka, admin, topic_prefix):
    refuse_controlled_group(settings_of(kafka.bootstrap_servers, f"{topic_prefix}none"), admin)
