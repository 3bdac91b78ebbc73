"""Transforms that rules of a `Pipeline` name, as `hooks:NAME`: this file stands beside its kgs.yaml."""

import pyarrow.compute as pc


def arrow_double(table, topic):
    return table.append_column("twice", pc.multiply(table["i"], 2))


def arrow_late(table, topic):
    assert table.num_rows == 0, "no rows, please"
    return table


def spark_double(df, topic):
    return df.selectExpr("*", "i * 2 AS twice")


def spark_same(df, topic):
    return df


def spark_odd(df, topic):
    return df.filter("i % 2 = 1")


def spark_twice_read(df, topic):
    # reads its input twice, which Spark does by running the plan twice
    return df.filter("i % 2 = 1").unionByName(df.filter("i % 2 = 0"))


def spark_limited(df, topic):
    return df.limit(3)


def spark_nested(df, topic):
    return df.selectExpr("*", "s.l[0].x AS first")


def spark_raises(df, topic):
    return df.selectExpr("*", "cast(raise_error('cannot do this') AS string) AS boom")
