"""A consumer's rounds of two topics, `sick` and `well`; real tables in a folder."""

import pytest

from tests.core.ingest.test_rounds import Rig


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.ingest.close()
