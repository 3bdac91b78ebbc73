"""Records of a topic to files, at once."""

from kgs_core.ingest.worker.process_batch import prepare_topic


def process_topic(storage, job, records, ranges):
    """As `prepare_topic`, and written: the batch, if there is one, and the cuts."""
    unwritten = prepare_topic(storage, job, records, ranges)
    batches = unwritten.written(storage).batches
    return batches[0] if batches else None, unwritten.cuts
