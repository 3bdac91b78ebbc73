"""Where reading of a topic begins, as a rule says it."""

from datetime import UTC, datetime, timedelta


def start_timestamp_ms(start: str) -> int:
    """The instant of a start `timestamp:<ISO 8601 with offset>`, ms since 1970. Raises `ValueError` if it is none."""
    kind, _, text = start.partition(":")
    try:
        instant = datetime.fromisoformat(text) if kind == "timestamp" else None
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ValueError("must be earliest, latest, committed or timestamp:2026-01-31T00:00:00Z (with its offset)")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    if instant < epoch:  # negative times mean earliest and latest to Kafka
        raise ValueError("a timestamp before 1970 is not possible; say earliest")
    return (instant - epoch) // timedelta(milliseconds=1)
