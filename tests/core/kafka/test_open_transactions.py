"""What a coordinator says of a transactional id, and what its refusals are told as."""

import kafka.errors
import pytest

from kgs_core.errors import PermanentError
from kgs_core.kafka import open_transactions
from kgs_core.kafka.open_transactions import OpenTransactions
from tests.configuration import settings_of


def test_who_may_not_ask_is_told_which_right_it_takes(monkeypatch):
    class Refusing:
        def describe_transactions(self, ids):
            raise kafka.errors.TransactionalIdAuthorizationFailedError("no")

    monkeypatch.setattr(open_transactions, "open_kafka_python", lambda *_: Refusing())
    with pytest.raises(PermanentError, match=r"transactional id g-controller: .*: give this user Describe on it"):
        OpenTransactions(settings_of()).coordinator_of("g-controller")
