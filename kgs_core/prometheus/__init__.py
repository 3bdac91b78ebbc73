"""Metrics for Prometheus and all that speak OpenMetrics."""
