"""What `bench topics` prints; what it measures is a system test's."""

from bench.commands.topics import print_result
from bench.many_topics import TopicsPlan, TopicsResult


def test_what_was_not_reached_is_told_as_unknown_and_never_as_zero(capsys):
    plan = TopicsPlan(topics=40, hung=1, batch_timeout_s=20.0)
    print_result(TopicsResult(plan, 1.5, None, None, 2.25, [], [], [], [], None, None, 144_000.0))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["all", "39", "topics", "open", "-"] in lines
    assert ["longest", "step", "(ended", "at", "20)", "2.250"] in lines
    assert ["round,", "longest", "-"] in lines
    assert ["-", "files", "per", "hour,", "at", "most", "144,000", "by", "these", "settings"] in lines


def test_figures_are_those_of_the_rounds(capsys):
    found = TopicsResult(TopicsPlan(), 1.0, 2.0, 3.0, 4.0, [1.0, 2.0, 6.0], [0.5], [0.25], [0.125], 12345.6, 0.007, 1.0)
    print_result(found)
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert ["round,", "median", "of", "3", "2.000"] in lines
    assert ["round,", "longest", "6.000"] in lines
    assert "12,346 files per hour" in out
    assert found.to_dict()["plan"]["topics"] == 500


def test_bound_of_files_is_a_file_of_each_topic_in_a_waiting_time_and_the_busy_ones():
    quiet = TopicsPlan(topics=100, wait_time_s=10.0)
    busy = TopicsPlan(topics=100, wait_time_s=10.0, busy_mb_per_s=10.0)
    assert quiet.most_files_per_h(5_000_000) == 36_000
    assert busy.most_files_per_h(5_000_000) == 36_000 + 4 * 3600
