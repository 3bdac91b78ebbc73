"""Records of a topic to files, at once."""

from kgs_core.ingest.worker.process_batch import prepare_topic


def process_topic(storage, job, records, ranges):
    """As `prepare_topic`, and written; and the cuts."""
    unwritten, cuts = prepare_topic(storage, job, records, ranges)
    return unwritten.written(storage) if unwritten is not None else None, cuts
