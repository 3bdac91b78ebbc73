"""Moments as people write them."""

from datetime import UTC, datetime

from kgs_core.errors import ConfigError


def moment_of(option: str, text: str) -> datetime:
    """The moment that an option names; UTC where it has no offset. Raises `ConfigError` if it names none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError([f"{option}: '{text}': write a time as 2026-11-15T08:00 or 2026-11-15T08:00+01:00"]) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
