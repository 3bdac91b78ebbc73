"""Compiled code and its cache: loops over bytes and numbers, made machine code once on a machine.

Packing and the adapters may use it. One rule: where the cache cannot be used, each process compiles for itself, which
takes seconds; results are the same. `compiled` says how; the other modules are the loops, and what they share with
their callers. The cache directory has what else is made once on a machine, too.
"""
