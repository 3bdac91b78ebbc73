"""What a coordinator says of a transactional id, and what its refusals are told as."""

import kafka.errors
import pytest

from kgs_core.config import parse_settings
from kgs_core.errors import PermanentError
from kgs_core.kafka import open_transactions
from kgs_core.kafka.open_transactions import OpenTransactions

TEXT = b"group: g\nkafka: {bootstrap_servers: 'k:9'}\nlake: {root: /lake}\ntopics: [{topic: t}]\n"


def test_who_may_not_ask_is_told_which_right_it_takes(monkeypatch):
    class Refusing:
        def describe_transactions(self, ids):
            raise kafka.errors.TransactionalIdAuthorizationFailedError("no")

    monkeypatch.setattr(open_transactions, "open_kafka_python", lambda *_: Refusing())
    with pytest.raises(PermanentError, match=r"transactional id g-controller: .*: give this user Describe on it"):
        OpenTransactions(parse_settings(TEXT, "kgs.yaml", {})).coordinator_of("g-controller")
