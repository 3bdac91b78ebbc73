"""A registry of schemas, one for all tests of a file."""

import pytest

from tests.faulty_registry import running_registry


@pytest.fixture(scope="module")
def registry():
    with running_registry() as found:
        yield found
