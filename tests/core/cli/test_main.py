"""What `kgs` is before any command of its own, and what an error of any command looks like."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from kgs_core.cli.main import KgsGroup, cli
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


def test_each_command_goes_by_its_name() -> None:
    assert len(cli.commands) > 20
    assert [(name, command.name) for name, command in cli.commands.items() if command.name != name] == []


def test_no_command_waits_for_what_others_import() -> None:
    """In a process of its own: in this one all of them have been imported."""
    program = "import sys, kgs_core.cli.main; print(*{'numpy', 'pydantic', 'rich'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(("words", "status"), [(["--version"], 0), (["no-such-command"], 2)])
def test_python_is_not_taken_apart_at_the_end(words: list[str], status: int) -> None:
    """In a process of its own, which ends. Threads of libraries would be ended with it wherever they stand."""
    program = (
        "import sys, atexit, os\nfrom kgs_core.cli import main\n"
        "class Seen:\n    def __del__(self, write=os.write):\n        write(1, b'taken apart')\n"
        "sys.kept, run = Seen(), main.cli.main\n"
        "def with_exit(*args, **kwargs):\n    atexit.register(print, 'at exit')\n    run(*args, **kwargs)\n"
        "main.cli.main = with_exit\n"
        f"sys.argv[1:] = {words!r}\nmain.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "at exit" in done.stdout
    assert "taken apart" not in done.stdout
