"""The picture of `bench monitor`; what it measures is a system test's."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_help_loads_nothing_that_draws():
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom bench.__main__ import bench_group\n"
        "from kgs_core.cli.main import cli\n"
        "for group, *words in ([cli], [bench_group], [cli, 'simulate'], [bench_group, 'packing']):\n"
        "    assert CliRunner().invoke(group, [*words, '--help']).exit_code == 0\n"
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"
