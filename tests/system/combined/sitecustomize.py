"""Imported by a Python that finds it as it starts: commits of its consumer are combined, crowded or not."""

from kgs_core.lake.topics.factory import open_lake

open_lake.__defaults__ = ("", "combined")
