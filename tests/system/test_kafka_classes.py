"""A broker that starts after `kgs prepare` maps the archive of its classes."""

import psutil

from kgs_core.embedded_kafka.cluster import EmbeddedKafka, prepare_kafka


def test_a_prepared_broker_maps_its_archive(tmp_path):
    archive = prepare_kafka(print)
    with EmbeddedKafka.start(tmp_path) as kafka:
        maps = psutil.Process(kafka.nodes[0].pid).memory_maps()
    assert str(archive) in {each.path for each in maps}
