"""The group: its state machine, members, messages, invariants, and the topics that carry them."""
