"""`kgs bill`: what a group has used, beside what Kafka's own assignment, KEDA and MWF would have. Reads only."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option, given_options
from kgs_core.config.classes import MAX_CAPACITY, MAX_PRICE
from kgs_core.errors import ConfigError
from kgs_core.lake.files.stored_path import AnyPath, named_path

if TYPE_CHECKING:
    from kgs_core.config import Settings
    from kgs_core.runtime.bill import BillTerms

_FILE = click.Path(path_type=Path)
_DAY = timedelta(days=1)
_OF_TIME = ("day", "since", "month", "from_file")
_OPTIONS = {"from_file": "--from", "keep": "--keep", "until": "--until"}


@click.command()
@config_option
@click.option("--day", metavar="YYYY-MM-DD", help="A day, UTC.  [default: yesterday]")
@click.option("--since", metavar="TIME", help="Start, instead of --day: 2026-11-15T08:00; UTC without an offset.")
@click.option("--until", metavar="TIME", help="End, as --since.  [default: now]")
@click.option("--month", metavar="YYYY-MM", help="The days of a month, a line each, from kept bills and topics.")
@click.option(
    "--from", "from_file", type=named_path, metavar="FILE", help="A recorded load, as in kgs simulate --speeds."
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.1, 86_400),
    default=60.0,
    metavar="SECONDS",
    help="How long a measurement lasts; topics keep one a minute.",
)
@click.option(
    "--price",
    type=click.FloatRange(0, MAX_PRICE),
    help="Price of one consumer for an hour, instead of bill.price_per_consumer_hour.",
)
@click.option(
    "--p99",
    "p99_s",
    type=click.FloatRange(0, 86_400),
    metavar="SECONDS",
    help="Latency to compare at.  [default: that of the group's own algorithm]",
)
@click.option(
    "--capacity",
    type=click.FloatRange(1, MAX_CAPACITY),
    metavar="BYTES_PER_S",
    help="C, instead of packing.packing_capacity_bytes_per_s; with --from no configuration is needed.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Store the day's bill in the lake, as Dagster does: topics keep their data for a limited time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--plot", "plot_file", type=_FILE, metavar="FILE", help="Plot the bill: .svg or .png.")
@click.pass_context
def bill(context: click.Context, /, **options: Any) -> None:
    """Show what a group's consumers used, and what alternatives would have used for the same load.

    Consumer hours, moves and their cost come from the consumers' reports. The recorded load is replayed through the
    latency model (see kgs simulate) with the group's own algorithm, Kafka's own assignment, KEDA and MWF, each with as
    few consumers as reach the same p99 latency. What the topics no longer hold is shown as unknown. Changes nothing
    except with --keep.

    \b
    kgs bill                                     yesterday
    kgs bill --month 2026-11 --plot november.svg
    kgs bill --from week.jsonl --interval 300 --capacity 160000 --price 0.05
    """  # noqa: D301 - \b is click's
    named = given_options(context)
    _check(named)
    plot_file: Path | None = options["plot_file"]
    if plot_file is not None:
        from kgs_core.api.replays import check_plot

        check_plot("--plot", plot_file)
    now = datetime.now(UTC)
    if options["from_file"] is not None:
        values, charts = _from_file(options, named)
    elif options["month"] is not None:
        _show_month(options, now)
        return
    else:
        values, charts = _of_group(options, now)
    if plot_file is not None:
        _plot(plot_file, charts)
    if options["as_json"]:
        click.echo(json.dumps(values, indent=1, allow_nan=False))
    else:
        from kgs_core.cli.group.bill_table import print_bill

        print_bill(values)


def _check(named: set[str]) -> None:
    problems = []
    times = [_OPTIONS.get(name, f"--{name}") for name in _OF_TIME if name in named]
    if len(times) > 1:
        problems.append(f"{times[1]}: not together with {times[0]}: give one of them")
    if "until" in named and "since" not in named:
        problems.append("--until: needs --since: give both, or neither")
    if "keep" in named and named & {"since", "from_file"}:
        problems.append("--keep: keeps whole days: name one by --day, or a --month")
    if problems:
        raise ConfigError(problems)


def _plot(path: Path, charts: list[Any]) -> None:
    from kgs_core.api.replays import Picture

    if not charts:
        click.echo(f"--plot: {path}: not drawn: there is nothing to compare with", err=True)
        return
    Picture(tuple(charts)).save(path)


def _from_file(options: dict[str, Any], named: set[str]) -> tuple[dict[str, Any], list[Any]]:
    from kgs_core.monitor.speeds.recorded import parse_measurements
    from kgs_core.runtime.bill import BillTerms, bill_of_load, terms_of
    from kgs_core.simulation.bill_charts import bill_charts
    from kgs_core.simulation.replay import READ_SHARE
    from kgs_core.system.files import read_text

    path: AnyPath = options["from_file"]
    if options["capacity"] is not None and "config_file" not in named:
        given = BillTerms(options["capacity"], READ_SHARE * options["capacity"])
    else:
        given = terms_of(settings_of(options["config_file"]), has_group=False)
    terms = _terms(given, options)
    found = bill_of_load(path.stem, parse_measurements(read_text(path), str(path)), terms)
    return found.to_dict(), bill_charts(found)


def _of_group(options: dict[str, Any], now: datetime) -> tuple[dict[str, Any], list[Any]]:
    from kgs_core.reporting.usage import Period
    from kgs_core.runtime.bill import bill_of_group, day_of, terms_of
    from kgs_core.simulation.bill_charts import bill_charts
    from kgs_core.system.moments import moment_of

    settings = settings_of(options["config_file"])
    day = _date("day", options["day"]) if options["day"] is not None else now.date() - _DAY
    asked = day_of(day)
    if options["since"] is not None:
        until = moment_of("--until", options["until"]) if options["until"] is not None else now
        asked = Period(_ms(moment_of("--since", options["since"])), _ms(until))
    found = bill_of_group(
        settings, asked, _ms(now), _terms(terms_of(settings, has_group=options["capacity"] is None), options)
    )
    values = found.to_dict()
    if options["keep"]:
        _keep(settings, day, values)
    return values, bill_charts(found)


def _keep(settings: "Settings", day: date, values: dict[str, Any]) -> None:
    from kgs_core.lake.topics.kept_bills import KeptBills

    if not values["is_over"]:
        click.echo(f"--keep: {day}: is not over: not kept", err=True)
    elif not KeptBills(settings).keep(day, values):
        click.echo(f"--keep: {day}: the bill that is kept knows more of the day: it stays", err=True)


def _show_month(options: dict[str, Any], now: datetime) -> None:
    from kgs_core.cli.group.bill_table import print_month
    from kgs_core.runtime.bill import bills_of_days, terms_of
    from kgs_core.simulation.bill_charts import month_chart

    settings = settings_of(options["config_file"])
    first = _date("month", options["month"], "-01")
    if first > now.date():
        raise ConfigError([f"--month: {options['month']}: has not begun yet: name one that has"])
    days = [first + n * _DAY for n in range(31) if (first + n * _DAY).month == first.month]
    past = [day for day in days if day <= now.date()]
    found, problems = bills_of_days(
        settings,
        past,
        _ms(now),
        _terms(terms_of(settings, has_group=options["capacity"] is None), options),
        keep=options["keep"],
    )
    by_number = {day.day: found.get(day) for day in past}
    if options["plot_file"] is not None:
        chart = month_chart(options["month"], by_number)
        _plot(options["plot_file"], [chart] if chart.lines else [])
    if options["as_json"]:
        click.echo(json.dumps({day.isoformat(): found.get(day) for day in past}, indent=1, allow_nan=False))
    else:
        print_month(by_number, options["month"])
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise click.exceptions.Exit(1)


def _terms(given: "BillTerms", options: dict[str, Any]) -> "BillTerms":
    from kgs_core.simulation.bill import Price

    if (capacity := options["capacity"]) is not None:
        given = replace(
            given, is_guessed=False, capacity=capacity, consumer_capacity=max(given.consumer_capacity, capacity)
        )
    price = given.price if options["price"] is None else Price(options["price"], given.price.currency)
    return replace(given, price=price, interval_s=options["interval_s"], p99_s=options["p99_s"])


def _date(option: str, text: str, rest: str = "") -> date:
    try:
        return date.fromisoformat(f"{text}{rest}")
    except ValueError:
        example = "2026-11-15".removesuffix("-15" if rest else "")
        raise ConfigError([f"--{option}: '{text}': write a {option} as {example}"]) from None


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
