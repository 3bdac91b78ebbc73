"""Settings of a group whose brokers nobody asks."""

import pytest

from tests.configuration import settings_of


@pytest.fixture
def settings():
    return settings_of(monitor={"window_s": 2.4})
