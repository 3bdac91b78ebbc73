"""Records of a topic to rows, and to files, at once."""

from kgs_core.ingest.worker.batch_files import write_batch
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.process_batch import prepare_topic
from kgs_core.ingest.worker.sorted_records import sort_records


def sorted_of(job, records):
    """What becomes of records, whatever ranges they are of."""
    return sort_records(job, {}, records, parse_records(job.plan, records))


def process_topic(storage, job, records, ranges):
    """As `prepare_topic`, and written: the batch, if there is one, and the cuts."""
    found, rows = prepare_topic(storage, job, records, ranges)
    batches = write_batch(storage, job, found, rows).batches
    return batches[0] if batches else None, found.cuts
