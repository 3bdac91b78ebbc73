"""`kgs register` against AWS Glue as moto plays it, for a lake on S3; read back by boto3."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable, Field

from bench.object_servers import ObjectServer
from kgs_core.catalog.catalog import Registration
from kgs_core.catalog.glue import open_glue
from kgs_core.cli.main import cli
from kgs_core.config.settings import CatalogSettings
from kgs_core.errors import PermanentError
from tests.configuration import settings_of
from tests.core.catalog.entries import KINDS, entry
from tests.sink import Sink
from tests.system.moto import REGION, Moto, running_moto

pytestmark = [pytest.mark.neighbours, pytest.mark.slow(20)]
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "any")
        with running_moto(tmp_path_factory.mktemp("moto")) as moto:
            yield moto


def table_of(moto: Moto, database: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = moto.client.get_table(DatabaseName=database, Name=name)["Table"]
    return found


def columns_of(table: dict[str, Any]) -> dict[str, str]:
    return {column["Name"]: column["Type"] for column in table["StorageDescriptor"]["Columns"]}


def change(moto: Moto, table: dict[str, Any]) -> None:
    """As somebody else does it."""
    taken = moto.client.meta.service_model.shape_for("TableInput").members
    given = {name: value for name, value in table.items() if name in taken}
    moto.client.update_table(DatabaseName=table["DatabaseName"], TableInput=given)


def test_all_types_are_registered_and_what_others_wrote_stays(moto: Moto) -> None:
    section = {"kind": "glue", "url": moto.url, "name": "{folder}.{last}"}
    settings = settings_of(lake={"root": "s3://lake", "storage_options": {"AWS_REGION": REGION}})
    catalog = open_glue(settings, CatalogSettings.model_validate(section))
    assert catalog.register(entry("types.orders")) is Registration.CREATED
    table = table_of(moto, "types", "orders")
    assert (table["TableType"], table["Parameters"]["table_type"], table["Description"]) == (
        "EXTERNAL_TABLE", "DELTA", "orders of the shop",
    )  # fmt: skip
    assert [*columns_of(table)] == [*KINDS]
    assert columns_of(table)["tags"] == "map<string,int>"
    assert table["StorageDescriptor"]["Columns"][0]["Comment"] == "number of the order"
    table["Parameters"]["owner"] = "us"
    table["Retention"] = 7
    columns = table["StorageDescriptor"]["Columns"]
    columns[1]["Comment"] = "by hand"
    table["PartitionKeys"] = [column for column in columns if column["Name"] == "day"]  # as a crawler has them
    columns.remove(table["PartitionKeys"][0])
    change(moto, table)
    assert catalog.register(entry("types.orders")) is Registration.UNCHANGED
    assert catalog.register(entry("types.orders", kinds={**KINDS, "more": pa.string()})) is Registration.UPDATED
    table = table_of(moto, "types", "orders")
    assert (table["Parameters"]["owner"], table["Retention"]) == ("us", 7)
    assert [key["Name"] for key in table["PartitionKeys"]] == ["day"]
    assert [*columns_of(table)] == [*(name for name in KINDS if name != "day"), "more"]
    assert table["StorageDescriptor"]["Columns"][1]["Comment"] == "by hand"
    del table["Parameters"]["table_type"], table["Parameters"]["classification"]
    del table["Parameters"]["spark.sql.sources.provider"]
    change(moto, table)
    with pytest.raises(PermanentError, match="not as a Delta table"):
        catalog.register(entry("types.orders"))
    catalog.close()


@pytest.fixture
def lake(s3_server: ObjectServer) -> Sink:
    """A table with its dead letters, and one more without."""
    sink = Sink(s3_server.storage("glue"))
    sink.started(1).ingest({0: (0, 20)})
    return sink


@pytest.fixture
def run(moto: Moto, lake: Sink, tmp_path: Path) -> Run:
    tree = {
        "group": "g",
        "kafka": {"bootstrap_servers": "127.0.0.1:9"},
        "lake": {"root": lake.storage.root, "storage_options": dict(lake.storage.options)},
        "topics": [{"topic": "t"}],
        "catalog": {"kind": "glue", "url": moto.url, "name": "{group}.{table}"},
    }
    config = tmp_path / "kgs.yaml"
    config.write_text(yaml.safe_dump(tree))

    def run() -> tuple[int, list[str]]:
        done = CliRunner().invoke(cli, ["register", "--config", str(config)])
        return done.exit_code, sorted(done.output.splitlines())

    return run


def test_a_lake_is_registered_again_when_it_or_the_catalogue_changes(moto: Moto, lake: Sink, run: Run) -> None:
    status, lines = run()
    assert (status, lines) == (0, ["t: created as g.t", "t_dead_letters: created as g.t_dead_letters"])
    table = table_of(moto, "g", "t")
    assert table["StorageDescriptor"]["Location"] == f"{lake.storage.root}/t"
    delta = DeltaTable(lake.storage.uri("t"), storage_options=lake.storage.delta_options())
    assert [*columns_of(table)] == [field.name for field in delta.schema().fields]
    delta.alter.add_columns(Field("more", "long"))
    assert run() == (0, ["t: updated as g.t", "t_dead_letters: unchanged as g.t_dead_letters"])
    assert columns_of(table_of(moto, "g", "t"))["more"] == "bigint"
    moto.client.delete_table(DatabaseName="g", Name="t")
    assert run()[1][0] == "t: created as g.t"
    other = {"Name": "t", "StorageDescriptor": {"Location": "s3://theirs/t", "Columns": []}}
    moto.client.update_table(DatabaseName="g", TableInput=other)
    status, lines = run()
    assert status == 1
    assert "t_dead_letters: unchanged as g.t_dead_letters" in lines
    assert "g.t is another table there, at s3://theirs/t" in "".join(lines)
    assert table_of(moto, "g", "t")["StorageDescriptor"]["Location"] == "s3://theirs/t"
    moto.kill()
    status, lines = run()
    assert status == 1
    assert "Glue does not answer" in "".join(lines)
    moto.start()
    assert run() == (0, ["t: created as g.t", "t_dead_letters: created as g.t_dead_letters"])
