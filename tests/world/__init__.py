"""A whole group in memory: topics, fleet, consumers and controllers, on a clock that moves when it is told to."""
