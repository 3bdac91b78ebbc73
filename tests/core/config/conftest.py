"""A smallest valid configuration, and what is wrong with a changed one."""

import pytest

from kgs_core.config import parse_settings
from kgs_core.errors import ConfigError

VALID = {
    "group": "group: g",
    "kafka": "kafka: {bootstrap_servers: 'a:9092'}",
    "lake": "lake: {root: /lake}",
    "topics": "topics: [{topic: t}]",
}


@pytest.fixture
def with_sections():
    """Text of a valid file in which the given top-level lines take the place of ours or come after them."""

    def build(**sections):
        return "\n".join({**VALID, **sections}.values())

    return build


@pytest.fixture
def settings_of(with_sections):
    def parse(environ=None, **sections):
        return parse_settings(with_sections(**sections).encode(), "kgs.yaml", environ or {})

    return parse


@pytest.fixture
def problems_in():
    """All problems of a text, without the file's name in front; empty when it is accepted."""

    def problems(text, environ=None):
        data = text if isinstance(text, bytes) else text.encode()
        try:
            parse_settings(data, "kgs.yaml", environ or {})
        except ConfigError as error:
            return [problem.removeprefix("kgs.yaml: ") for problem in error.problems]
        return []

    return problems


@pytest.fixture
def problems_of(with_sections, problems_in):
    def problems(environ=None, **sections):
        return problems_in(with_sections(**sections), environ)

    return problems
