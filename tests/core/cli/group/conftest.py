"""`kgs plan` in an empty folder."""

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli


@pytest.fixture
def kgs_plan(here):
    return lambda *arguments: CliRunner().invoke(cli, ["plan", *map(str, arguments)])
