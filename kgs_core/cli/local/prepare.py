"""`kgs prepare`: what later starts need, made beforehand."""

from importlib import import_module

import click


@click.command()
@click.option("--broker/--no-broker", default=True, help="Whether the embedded broker's jars are downloaded.")
def prepare(*, broker: bool) -> None:
    """Make what is made once on a machine: the embedded broker's jars, Spark's class archive, the compiled search.

    All is kept in the cache directory (KGS_CACHE, default ~/.cache/kgs). With the archive a consumer's Spark starts in
    about half the time; run this when building an image or a machine.
    """
    from kgs_core.adapters.embedded_kafka.jars import kafka_jars
    from kgs_core.adapters.spark.class_archive import build_archive
    from kgs_core.adapters.spark.java import find_java
    from kgs_core.adapters.spark.session import JAVA_OPTIONS

    click.echo("search for packings: compiling")
    import_module("kgs_core.packing.search.packer")  # is compiled as it is imported
    if broker:
        click.echo(f"Kafka: {kafka_jars(find_java(), click.echo)}")
    click.echo("Spark: starting once to see which classes it loads")
    click.echo(f"Spark: {build_archive(JAVA_OPTIONS)}")
