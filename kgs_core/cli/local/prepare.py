"""`kgs prepare`: what later starts need, made beforehand."""

from importlib import import_module

import click


@click.command()
@click.option("--broker/--no-broker", default=True, help="Also download the embedded broker.")
def prepare(*, broker: bool) -> None:
    """Prepare a machine: download the embedded broker, archive its classes and Spark's, compile code.

    Everything goes into the cache directory (KGS_CACHE, default ~/.cache/kgs). A consumer's Spark then starts in about
    half the time; run this when you build an image or a machine.
    """
    from kgs_core.accel.compiled import LOOPS, machine_code
    from kgs_core.embedded_kafka.cluster import prepare_kafka
    from kgs_core.spark.class_archive import build_archive
    from kgs_core.spark.session import JAVA_OPTIONS

    click.echo("search for packings: compiling")
    import_module("kgs_core.packing.search.packer")  # is compiled as it is imported
    click.echo("loops over records and values: compiling")
    for each in LOOPS:
        machine_code(each)
    if broker:
        click.echo(f"Kafka: {prepare_kafka(click.echo)}")
    click.echo("Spark: starting once to see which classes it loads")
    click.echo(f"Spark: {build_archive(JAVA_OPTIONS)}")
