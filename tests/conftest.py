"""Marks tests by the folder they lie in."""

from pathlib import Path

import pytest

_SYSTEM = Path(__file__).parent / "system"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SYSTEM in item.path.parents:
            item.add_marker("system")
