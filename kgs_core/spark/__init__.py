"""Spark: session, Java, class archive, errors of its tasks."""
