"""Commands of the lake: audit, adopt, maintenance."""
