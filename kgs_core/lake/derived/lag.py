"""How far the derived tables of a lake are behind the tables that they are derived from."""

import time
from collections.abc import Iterable

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import PortError, one_line
from kgs_core.lake.derived.history import derived_table


def newest_rows_lags(
    settings: Settings, specs: Iterable[TableSpec], problems: list[str]
) -> dict[str, tuple[float | None, float]]:
    """Derived table -> its lag, s, None where that is not known, and the rule's `max_lag_s`.

    `problems`: is given a line for each table that could not be looked at.
    """
    found: dict[str, tuple[float | None, float]] = {}
    for spec in specs:
        rule = spec.rule.newest_rows
        if rule is None or spec.latest_table in found:
            continue
        for name in spec.derived_tables:
            found[name] = (None, rule.max_lag_s)
            try:
                found[name] = (derived_table(settings, spec, name).lag_s(time.time()), rule.max_lag_s)
            except PortError as e:
                problems.append(str(e))
            except Exception as e:  # noqa: BLE001 - deltalake and the stores' clients raise what they like
                problems.append(f"table {name}: {one_line(e)}")
    return found
