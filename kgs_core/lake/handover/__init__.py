"""Tables that change hands: to another group, to another cluster."""
