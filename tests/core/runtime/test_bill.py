"""Bills of several days: what cannot be kept is shown all the same."""

from datetime import date
from types import SimpleNamespace

import kgs_core.runtime.bill as module
from kgs_core.errors import PermanentError


class RefusingLake:
    def __init__(self, settings):
        pass

    def load(self, day):
        return None

    def keep(self, day, bill):
        raise PermanentError(f"{day}: read only")


def test_a_bill_that_cannot_be_kept_stops_no_other_day(monkeypatch):
    bill = SimpleNamespace(used_hours=1.0, recording=None, is_over=True, to_dict=lambda: {"used_consumer_hours": 1.0})
    monkeypatch.setattr(module, "KeptBills", RefusingLake)
    monkeypatch.setattr(module, "bill_of_group", lambda *_: bill)
    days = [date(2026, 11, 1), date(2026, 11, 2)]
    found, problems = module.bills_of_days(None, days, 0, None, keep=True)
    assert list(found) == days
    assert problems == ("2026-11-01: read only", "2026-11-02: read only")
