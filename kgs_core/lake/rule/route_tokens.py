"""Which route a partition's rows go by: a token in the log of the topic's own table and of every side table. Pure.

A side table is committed before the topic's own table, so whoever is killed in between leaves rows there that are ahead
of the position. They are what a replay finds, as long as it goes by the same route. So each partition has one route at
a time, whose token is a generation and a fingerprint of the route.
1. Who takes a partition up by another route than the own table says writes the next generation there, and then into
   every side table that the own table's log names. Generations only grow, so two who do so at once come to one order.
2. Every commit of rows expects the token, in the own table as in side tables. What an owner by an earlier route still
   has in hand is refused everywhere from then on.
3. A side table that is ahead by another route is not taken up at all: its rows can only be matched by that route.
"""

import hashlib
import json
from collections.abc import Mapping

ROUTED = "kgs/routed"
"""Application id of a flag: the table's topics have, or had, a route. Who knows of none expects that it is not set."""
NO_ROUTE = 0
_SIZE = 2**32


def fingerprint(table: str, column: str, tables: Mapping[str, str]) -> int:
    """A number that tells a route from another: all that decides which table a row goes into.

    `tables`: value -> path of its side table; empty: no route.
    """
    if not tables:
        return NO_ROUTE
    text = json.dumps([table, column, sorted(tables.items())])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) or 1


def token(generation: int, route: int) -> int:
    """The version that stands in a table's log, from 1 on."""
    return generation * _SIZE + route


def generation_of(token: int | None) -> int:
    """How many routes there were; 0 before the first."""
    return (token or 0) // _SIZE


def route_of(token: int | None) -> int:
    """The fingerprint."""
    return (token or 0) % _SIZE
