"""The picture of `bench monitor`; what it measures is a system test's."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from bench.accuracy import AccuracyPoint
from bench.commands.monitor import speeds_picture

ROOT = Path(__file__).parents[3]


def test_a_panel_for_each_load_and_the_names_of_its_lines_once():
    found = {
        "step-up-lz4": [AccuracyPoint(1.0, 100e3, 200e3, 300e3), AccuracyPoint(2.0, 100e3, 200e3, 300e3)],
        "steady-none": [],
    }
    drawn = speeds_picture(found)
    texts = [each.text for each in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"step-up-lz4", "steady-none", "time, s", "write speed, KB/s"} <= set(texts)
    names = ["written in the last second", "written in the window", "measured"]
    assert [text for text in texts if text in names] == names
    level = [float(y) for y in re.findall(r'd="M [\d.]+ ([\d.]+) L [\d.]+ \1 " clip-path', drawn)]
    assert sorted(level) == level, "300 KB/s is above 200, which is above 100"
    assert len(set(level)) == 3


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
