"""What an error of any command looks like."""

import click
import pytest
from click.testing import CliRunner

from kgs_core.cli.main import KgsGroup
from kgs_core.errors import ConfigError, KgsError, PermanentError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermanentError("Kafka node 1: has ended: see node.log, which ends:\nINFO a\nERROR b"), 1),
        (ConfigError(["kgs.yaml: topics: empty", "kgs.yaml: group: missing"]), 2),
    ],
)
def test_every_problem_is_one_error_and_the_end_of_a_log_is_none(error: KgsError, said: int) -> None:
    @click.group(cls=KgsGroup)
    def commands() -> None:
        pass

    @commands.command()
    def failing() -> None:
        raise error

    result = CliRunner().invoke(commands, ["failing"])
    assert result.stderr.count("error: ") == said
    assert result.stderr.replace("error: ", "") == f"{error}\n"
    assert result.exit_code == error.exit_code
