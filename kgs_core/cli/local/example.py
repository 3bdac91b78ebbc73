"""`kgs example`: the files that people start from, out of the installation itself."""

from pathlib import Path

import click

from kgs_core.errors import ConfigError

FILES = Path(__file__).parents[2] / "files"
CONFIGURATION = "kgs.yaml"
_NAMES = {
    CONFIGURATION: "kgs.example.yaml",
    "dagster.yaml": "dagster.yaml",
    "workspace.yaml": "workspace.yaml",
    "rules.yaml": "rules.yaml",
    "dashboard": "dashboard.json",
}
SMALLEST = r"""group: flights
kafka: {bootstrap_servers: "localhost:9092"}
lake: {root: lake}
topics:
  - pattern: flights\..*
    format: string
"""
LAKES = {
    "s3": """lake:
  root: s3://bucket/lake
  storage_options: # without them AWS_... of the environment, or the role of this machine or pod
    aws_region: eu-central-1
    aws_access_key_id: ${AWS_ACCESS_KEY_ID}
    aws_secret_access_key: ${file:/etc/kgs/aws-secret-key}
    # aws_endpoint_url: https://minio.example.org # of another store that speaks S3's protocol
""",
    "azure": """lake:
  root: abfss://container@account.dfs.core.windows.net/lake # or az://container/lake, with azure_storage_account_name
  storage_options: # without them AZURE_... of the environment, or the identity of this machine or pod
    azure_storage_account_key: ${file:/etc/kgs/azure-account-key}
    # instead of it: azure_storage_sas_token; or azure_client_id, azure_client_secret and azure_tenant_id
""",
    "gcs": """lake:
  root: gs://bucket/lake
  storage_options: # without them GOOGLE_... of the environment, or the service account of this machine or pod
    google_service_account: /etc/kgs/service-account.json
""",
}
"""The same line for a lake in a store of objects."""


@click.command()
@click.argument("name", type=click.Choice(list(_NAMES)), default=CONFIGURATION)
@click.option("--all", "has_all", is_flag=True, help="Print every setting of kgs.yaml, explained, with its default.")
@click.option("--store", type=click.Choice(list(LAKES)), help="Print the smallest kgs.yaml for a lake in this store.")
def example(name: str, *, has_all: bool, store: str | None) -> None:
    """Print a file to start from: by default the smallest kgs.yaml. `kgs init` writes one for your topics.

    dagster.yaml has settings for a Dagster instance on one machine (put it into DAGSTER_HOME), workspace.yaml is for
    `dagster dev -w`, rules.yaml has alerts for Prometheus, and dashboard is a dashboard for Grafana, as JSON.
    """
    if has_all and name != CONFIGURATION:
        raise ConfigError([f"--all: goes with {CONFIGURATION}: leave it out for {name}"])
    if store and (has_all or name != CONFIGURATION):
        raise ConfigError([f"--store: goes with the smallest {CONFIGURATION}: leave it out"])
    is_smallest = name == CONFIGURATION and not has_all
    smallest = SMALLEST.replace("lake: {root: lake}\n", LAKES[store]) if store else SMALLEST
    click.echo(smallest if is_smallest else (FILES / _NAMES[name]).read_text(), nl=False)
