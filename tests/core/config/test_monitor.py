"""Relations between the monitor's settings."""

import pytest


def test_defaults_fit_together(settings_of):
    monitor = settings_of().monitor
    assert (monitor.window_s, monitor.min_span_s, monitor.interval_s, monitor.measure) == (30.0, 10.0, 1.0, "auto")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{window_s: 10.0}", "min_span_s (10) must be less than window_s (10)"),
        ("{interval_s: 11.0}", "interval_s (11) must be at most half of window_s - min_span_s (20)"),
        ("{measure: jmx}", "measure"),
        ("{window_s: .nan}", "window_s"),
        ("{topic_replication: 0}", "topic_replication"),
    ],
)
def test_what_cannot_work_is_refused(problems_of, values, said):
    (problem,) = problems_of(monitor=f"monitor: {values}")
    assert said in problem
