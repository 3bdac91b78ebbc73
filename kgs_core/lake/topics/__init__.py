"""Topics' places in the lake: tables, side tables, whose they are, upkeep of all of them."""
