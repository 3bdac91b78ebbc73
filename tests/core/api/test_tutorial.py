"""The tutorial runs from its first cell to its last, in one process, and shows what its text says."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = json.loads((Path(__file__).parents[3] / "docs/tutorial.ipynb").read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def run_cell(number, names):
    """Execute a cell as a notebook does: the value of a last line that is an expression is what it shows."""
    file = Path(f"cell_{number}.py")
    file.write_text(CODE[number])  # where `inspect` finds the source of what a cell defines
    tree = ast.parse(CODE[number])
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(file), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(file), "eval"), names) if last else None


def test_the_notebook_is_kept_without_outputs():
    assert NOTEBOOK["nbformat"] == 4
    assert [cell for cell in NOTEBOOK["cells"] if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.slow
@pytest.mark.usefixtures("algorithms_kept")
def test_the_tutorial_runs_and_shows_what_it_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("KGS_CONFIG", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    names = {"__name__": "__main__"}
    shown, printed = [], []
    for number in range(len(CODE)):
        shown.append(run_cell(number, names))
        printed.append(capfd.readouterr())
    first, second, monday, table, picture, front, own, package, command, dagster = shown
    assert "Rscore" in first._repr_html_()
    assert 0 < second.rscore < 1
    assert (len(monday), len(names["week"])) == (24, 168)
    assert min(monday) < max(monday) / 2
    assert {"search", "mwf", "kafka:12", "keda"} <= set(table.index)
    assert set(front) < set(table.index)
    assert "search" in front
    assert picture._repr_svg_().startswith("<svg")
    hours, moved = own["consumer_hours"], own["moved_partitions"]
    assert moved["sticky"] < moved["mwf"], "it moves little"
    assert hours["sticky"] > hours["search"], "and hardly ever gives a consumer back"
    assert (package.returncode, command, dagster) == (0, None, None)
    rows = [line.split()[0].rstrip("*") for line in printed[-2].out.splitlines() if line.startswith(("s", "m"))]
    assert rows == ["sticky", "search"], printed[-2]
    assert "'sticky'" in printed[-1].out
    assert "'search@fewest'" in printed[-1].out
