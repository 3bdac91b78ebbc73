import pytest

from kgs_core.config import registry


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """An answer is not waited for longer than this."""
    monkeypatch.setattr(registry.RegistrySettings, "timeout_s", 0.5)
