"""A registry of schemas, one for all tests of a file."""

import pytest

from kgs_core.demo.registry_stub import running_registry


@pytest.fixture(scope="module")
def registry():
    with running_registry() as found:
        yield found
