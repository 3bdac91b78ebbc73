"""Experiments on Spark and on disk: workloads, grid, results."""
