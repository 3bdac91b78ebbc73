"""Measurements that anybody can repeat, in a checkout: `make bench ARGS=...`, or `bench --help`.

No part of the wheel: it may import all of the product, and only tests import it.
"""
