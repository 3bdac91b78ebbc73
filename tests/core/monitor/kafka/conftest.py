"""Settings of a group whose brokers nobody asks."""

import pytest

from kgs_core.config import Settings


@pytest.fixture
def settings():
    return Settings.model_validate(
        {
            "group": "g",
            "kafka": {"bootstrap_servers": "127.0.0.1:9"},
            "lake": {"root": "/lake"},
            "topics": [{"topic": "t"}],
            "monitor": {"window_s": 2.4},
        }
    )
