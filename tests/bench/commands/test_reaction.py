"""`bench reaction`: its table, without a group."""

from bench.commands.reaction import print_reactions
from bench.reaction import PARTS, Reaction


def test_a_row_for_each_control_and_strike_with_nearest_ranks(capsys):
    found = [Reaction("bare", "killed", 8, float(n)) for n in range(11, 0, -1)]
    parts = dict(zip(PARTS, (2.0, 1.0, 0.0, 0.5), strict=True))
    print_reactions([*found, Reaction("dagster", "doubled", 8, 3.5, parts)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        ["bare", "killed", "11", "6.0", "10.0", "11.0", "-", "-", "-", "-"],
        ["dagster", "doubled", "1", "3.5", "3.5", "3.5", "2.0", "1.0", "0.0", "0.5"],
    ]
