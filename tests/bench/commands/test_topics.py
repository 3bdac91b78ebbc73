"""What bounds the files of `bench topics`; what it measures is a system test's."""

from bench.many_topics import TopicsPlan


def test_bound_of_files_is_a_file_of_each_topic_in_a_waiting_time_and_the_busy_ones():
    quiet = TopicsPlan(topics=100, wait_time_s=10.0)
    busy = TopicsPlan(topics=100, wait_time_s=10.0, busy_mb_per_s=10.0)
    assert quiet.most_files_per_h(5_000_000) == 36_000
    assert busy.most_files_per_h(5_000_000) == 36_000 + 4 * 3600
