"""Processes that drive the core through its ports: controller, consumers, rebalance run."""
