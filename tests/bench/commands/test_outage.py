"""`bench outage`: its table and what it refuses, without a broker."""

from bench.commands.outage import print_outages
from bench.outage import OutageFigures


def test_a_row_for_each_outage_with_the_figures_of_each_reader(capsys):
    times = tuple(float(n) for n in range(1, 21))
    found = [OutageFigures(3, "black in", reader, times) for reader in ("kgs", "Java")]
    print_outages(found)
    assert capsys.readouterr().out.split("\n")[1].split() == ["3", "black", "in", *2 * ["11.0", "20.0", "20.0"]]
    assert found[0].to_dict()["p50_s"] == 11.0
