"""The group's tables in its catalogue: what `kgs register` does, as an asset below all tables."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import Settings
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.metadata import table
from kgs_dagster.run_process import claim_run, fail_if, failures_named
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.catalog.registration import TableRegistration

CHECK = "registered"
Register = Callable[[Settings], "Sequence[TableRegistration]"]
_KINDS = {"unity": "unitycatalog", "glue": "glue"}


def register(settings: Settings) -> "Sequence[TableRegistration]":
    """What `kgs register` does."""
    from kgs_core.catalog.registration import register_lake

    found: list[TableRegistration] = []
    register_lake(settings, found.append)
    return found


def catalog_key(group: GroupConfig) -> dg.AssetKey:
    """Key of the asset."""
    return group.key("catalog")


def catalog_assets(group: GroupConfig, register: Register = register) -> list[dg.AssetsDefinition]:
    """The catalogue; none where none is configured."""
    catalog = group.settings.catalog
    if catalog is None:
        return []
    layout = lake_layout(group)

    @dg.multi_asset(
        name=f"catalog{group.suffix}",
        specs=[
            dg.AssetSpec(
                catalog_key(group),
                deps=[key for asset in layout for key in (asset.table, *asset.sides.values(), *asset.derived.values())],
                description=f"The group's tables in the catalogue {catalog.url or catalog.kind}, as {catalog.name}: "
                "what `kgs register` does. Materialized where all of them are there; what is not is tried again.",
                group_name=f"lake{group.suffix}",
                kinds={_KINDS.get(catalog.kind, catalog.kind)},
                skippable=True,
            )
        ],
        check_specs=[
            dg.AssetCheckSpec(
                CHECK, asset=catalog_key(group), description="The catalogue has every table of the group."
            )
        ],
    )
    def tables_in_catalog(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult[Any]]:
        claim_run(context.instance, context.run.run_id)
        with failures_named():
            found = register(group.settings)
        problems = [f"table {each.table}: {each.problem}" for each in found if each.problem]
        outcome = f"{len(found) - len(problems)} tables registered, {len(problems)} refused"
        yield dg.AssetCheckResult(
            passed=not problems,
            check_name=CHECK,
            description="\n".join([outcome, *problems]),
            metadata=_metadata(found),
        )
        fail_if(problems)
        yield dg.MaterializeResult(asset_key=catalog_key(group), metadata=_metadata(found))

    return [tables_in_catalog]


def _metadata(found: "Sequence[TableRegistration]") -> dict[str, Any]:
    columns = dict.fromkeys(("table", "name", "outcome", "problem"), "string")
    lines = [
        {"table": each.table, "name": each.name, "outcome": str(each.outcome or ""), "problem": each.problem}
        for each in found
    ]
    return {
        "registered": sum(not each.problem for each in found),
        "not_registered": sum(bool(each.problem) for each in found),
        "tables": table(lines, columns),
    }
