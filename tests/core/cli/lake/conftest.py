"""Commands of a lake by a configuration in a file."""

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from tests.configuration import text_of


@pytest.fixture
def configured(tmp_path):
    """Writes a file with these sections, of a lake in the folder `lake`; gives what runs a command by it."""

    def write(**sections):
        config = tmp_path / "kgs.yaml"
        config.write_text(text_of(**{"lake": {"root": str(tmp_path / "lake")}, **sections}))
        return lambda *words: CliRunner().invoke(cli, [*words, "--config", str(config)])

    return write
