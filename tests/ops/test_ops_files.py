"""Dashboard, alerts and the page of all metrics say what the table of metrics says."""

import math
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from bench import draw_dashboard
from kgs_core.metrics import METRICS
from kgs_core.simulation.charts import picture
from ops import make_dashboard
from tests.ops.shortened_rules import shortened

ROOT = Path(__file__).parents[2]
PAGE_OF_ALERTS, PAGE_OF_METRICS = ((ROOT / "docs" / name).read_text() for name in ("alerts.md", "metrics.md"))
RULES = ROOT / "ops" / "prometheus" / "rules.yaml"


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_dashboard_is_the_one_that_the_script_makes():
    assert make_dashboard.TARGET.read_text() == make_dashboard.text()


def test_dashboard_shows_every_metric_and_no_two_panels_overlap():
    shown = {n for *_, queries in make_dashboard.PANELS for q in queries.values() for n in make_dashboard.names_in(q)}
    assert shown == METRICS.keys()
    panels = [panel["gridPos"] for panel in make_dashboard.dashboard()["panels"]]
    cells = [(x, y) for p in panels for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < make_dashboard.COLUMNS


def test_alerts_name_metrics_that_are_there_and_a_runbook_that_is_there():
    headings = {
        re.sub(r"[^a-z0-9]", "", line.lower()) for line in PAGE_OF_ALERTS.splitlines() if line.startswith("## ")
    }
    for rule in alerts():
        assert make_dashboard.names_in(rule["expr"]) <= METRICS.keys(), rule["alert"]
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor) == ("docs/alerts.md", rule["alert"].lower())
        assert anchor in headings


def test_labels_that_alerts_choose_by_are_those_of_the_metrics():
    for rule in alerts():
        for name, chosen in re.findall(r"(kgs_\w+)\{(\w+)=", rule["expr"]):
            assert chosen in METRICS[name].labels


def test_page_of_all_metrics_is_the_table():
    rows = [
        f"| `{m.name}` | {m.kind} | {', '.join(m.labels)} | {m.help.removesuffix('.')} | {m.source} |"
        for m in METRICS.values()
    ]
    assert "\n".join(rows) in PAGE_OF_METRICS, "docs/metrics.md: the rows are\n" + "\n".join(rows)


def test_every_alert_is_played_through():
    played = (RULES.parent / "rules_test.yaml").read_text()
    assert [rule["alert"] for rule in alerts() if rule["alert"] not in played] == []


def test_alerts_are_a_prometheus_rule_of_the_operator():
    command = ["make", "--no-print-directory", "prometheus-rule"]
    made = yaml.safe_load(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert (made["apiVersion"], made["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert made["spec"] == yaml.safe_load(RULES.read_text())


def test_shortened_rules_differ_in_their_times_alone():
    """The outages of `make alerts-live` are played through with these."""
    short = {
        rule["alert"]: rule
        for group in shortened(yaml.safe_load(RULES.read_text()), 10)["groups"]
        for rule in group["rules"]
    }
    assert short.keys() == {rule["alert"] for rule in alerts()}
    assert short["KgsLag"]["expr"].endswith("> 30")
    assert short["KgsLag"]["for"] == "30000ms"
    assert short["KgsFlapping"]["expr"].endswith("[180000ms])) > 10")
    for rule in alerts():
        other = short[rule["alert"]]
        assert {**other, "expr": "", "for": ""} == {**rule, "expr": "", "for": ""}


def test_a_picture_of_the_dashboard_has_what_prometheus_answers_by_panel():
    def ask(expression, start_s, end_s, step_s):
        assert (start_s, end_s, step_s) == (600.0, 1200.0, 2.5)
        assert "$" not in expression
        if expression.startswith("kgs_consumer_load_bytes_per_second"):
            yield {
                "metric": {"consumer": "3"},
                "values": [[600, "2000000"], [602.5, "NaN"], [720, "5000000"], [722.5, "6000000"]],
            }

    (load,) = draw_dashboard.charts(ask, "g", 600.0, 1200.0)
    assert (load.title, load.y_name) == ("Load of each consumer", "MB/s")
    minutes, rates = zip(*load.lines["consumer 3"], strict=True)
    assert minutes == pytest.approx((0, 117.5 / 60, 2, 122.5 / 60))
    assert rates == pytest.approx((2, math.nan, 5, 6), nan_ok=True), "no line over what nobody knows"
    assert picture([load], "png")
    assert draw_dashboard.charts(ask, "g", 600.0, 1200.0, ["Lake"]) == []
