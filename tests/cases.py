"""Cases of a test, each behind what it is about."""

from collections.abc import Mapping, Sequence

import pytest


def cases(names: str | Sequence[str], table: Mapping[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(names, table.values(), ids=table)
