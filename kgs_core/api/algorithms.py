"""Names of packing algorithms: those there are, and `register_algorithm` for one's own."""

from kgs_core.errors import ConfigError
from kgs_core.packing.custom import CustomAlgorithm, PlainFunction
from kgs_core.packing.registry import ALGORITHMS, register


def algorithms() -> tuple[str, ...]:
    """Names that `pack`, `plan` and `simulate` take, those of installed packages and registered ones among them."""
    return tuple(ALGORITHMS)


def register_algorithm(name: str, function: PlainFunction) -> None:
    """Let this process take `function` by `name`, wherever an algorithm is named: `pack`, `simulate`, `plan`, settings.

    Other processes (commands, Dagster, Spark) see it where an installed package names it among its entry points, in the
    group `kgs.algorithms`.

    Args:
        name: starts with a letter, then letters, digits, _ and -. One that was registered before is replaced.
        function: `pack(speeds, capacity, current, seed) -> {(topic, number): consumer}`, of its arguments alone.
            `speeds` are bytes/s by (topic, number), `current` is who reads which of them now. The answer must have
            every partition once, with a number of 1 and up; one that nobody in `current` has means a new consumer.

    Raises:
        ConfigError: a name that cannot be, or is that of one of kgs's own algorithms; no function.
    """
    if not callable(function):
        raise ConfigError([f"algorithm '{name}': {function!r}: give a function"])
    register(name, CustomAlgorithm(name, function))
