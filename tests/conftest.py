"""Marks tests by the folder they lie in."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing about what is tested
settings.register_profile("kgs", deadline=None)
settings.load_profile("kgs")

_SYSTEM = Path(__file__).parent / "system"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SYSTEM in item.path.parents:
            item.add_marker("system")
