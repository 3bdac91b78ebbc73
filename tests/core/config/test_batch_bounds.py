"""Settings of a batch that bound each other."""

import pytest


def test_a_wait_not_shorter_than_the_timeout_names_both(problems_of):
    assert problems_of(consumer="consumer: {wait_time_s: 5, batch_timeout_s: 5}") == [
        "consumer: wait_time_s (5) must be less than batch_timeout_s (5)"
    ]


@pytest.mark.parametrize(
    ("written", "most"),
    [
        ("", 64_000_000),
        ("batch_bytes: 1000", 4000),
        ("batch_bytes: 20000000", 64_000_000),
        ("batch_bytes: 90000000", 90_000_000),
        ("max_batch_bytes: null", 64_000_000),
        ("batch_bytes: 1000, max_batch_bytes: 1000", 1000),
        ("max_batch_bytes: 900000000", 900_000_000),
    ],
)
def test_how_far_batches_grow(settings_of, written, most):
    assert settings_of(consumer=f"consumer: {{{written}}}").consumer.largest_batch_bytes == most


def test_bounds_of_a_batch_name_both(problems_of):
    assert problems_of(consumer="consumer: {batch_bytes: 5000, max_batch_bytes: 4999}") == [
        "consumer: max_batch_bytes (4999) must be at least batch_bytes (5000)"
    ]
    assert problems_of(consumer="consumer: {max_batch_bytes: 64MB}") == [
        "consumer.max_batch_bytes: '64MB': give a whole number from 1000 to 1000000000 (bytes), or null"
    ]
