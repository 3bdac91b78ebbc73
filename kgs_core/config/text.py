"""From the text of kgs.yaml and the environment to `Settings`, with every problem in one message."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kgs_core.config.problems import Location, describe, dotted
from kgs_core.config.settings import Settings
from kgs_core.config.yaml_tree import MAX_BYTES, load_tree
from kgs_core.errors import ConfigError

__all__ = ["ENV_PREFIX", "MAX_BYTES", "parse_settings"]

ENV_PREFIX = "KGS_SET_"
MAX_PROBLEMS = 50
_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def parse_settings(data: bytes, source: str, environ: Mapping[str, str]) -> Settings:
    """Settings out of the bytes of a file; `KGS_SET_<SECTION>__<KEY>` in the environment overrides a value.

    `${NAME}` in a string stands for the environment's NAME, so that no secret need stand in the file; `$${NAME}` for
    the text `${NAME}` itself.

    Args:
        data: the file's content, UTF-8 YAML, at most 1 MiB.
        environ: the environment; an override's value is YAML (`KGS_SET_CONSUMER__BATCH_BYTES=1000000`).

    Raises:
        ConfigError: all problems at once, each with the field, the value (never a secret) and what is allowed.
    """
    tree = load_tree(data, source)
    if tree is None:
        raise ConfigError([f"{source}: empty: start from what `kgs example` prints"])
    if not isinstance(tree, dict):
        raise ConfigError([f"{source}: must be a mapping of sections, is a {type(tree).__name__}"])
    environment = _Environment(environ)
    tree = _unshared(tree)
    environment.override(tree)
    full = environment.substitute(tree)
    problems = list(environment.problems)
    try:
        settings = Settings.model_validate(full)
    except ValidationError as e:
        errors = [error for error in e.errors(include_url=False) if error["loc"] not in environment.unset]
        problems += [describe(error, environment.origins) for error in errors]
    if problems:
        more = [f"{len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        raise ConfigError([f"{source}: {p}" for p in problems[:MAX_PROBLEMS] + more])
    return settings


def _unshared(node: Any) -> Any:
    """A copy in which what aliases shared is apart, so that an override changes one place only."""
    if isinstance(node, dict):
        return {key: _unshared(value) for key, value in node.items()}
    return [_unshared(value) for value in node] if isinstance(node, list) else node


class _Environment:
    """Puts the environment's values into the tree and remembers where: they may be secrets and are never shown.

    Attributes:
        problems: variables that cannot be used.
        origins: location -> the names of the variables in its value.
        unset: locations whose value is missing; what pydantic says of them would only repeat that.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []
        self.origins: dict[Location, str] = {}
        self.unset: set[Location] = set()

    def override(self, tree: dict[Any, Any]) -> None:
        """Put the values of all `KGS_SET_...` into `tree`, which shares no part with another."""
        for name in sorted(self._environ):
            if name.startswith(ENV_PREFIX):
                try:
                    self._override(tree, name)
                except ConfigError as e:
                    self.problems += e.problems

    def _override(self, tree: dict[Any, Any], name: str) -> None:
        source = f"environment variable {name}"
        path = name.removeprefix(ENV_PREFIX).lower().split("__")
        here: Any = tree
        for section in path[:-1]:
            if here.get(section) is None:
                here[section] = {}
            here = here[section]
            if not isinstance(here, dict):
                raise ConfigError([f"{source}: '{section}' is not a section: set it as a whole"])
        here[path[-1]] = load_tree(self._environ[name].encode(errors="replace"), source)
        self.origins[tuple(path)] = name

    def substitute(self, node: Any, loc: Location = ()) -> Any:
        """A copy of `node` with every `${NAME}` in its strings replaced."""
        if isinstance(node, dict):
            return {key: self.substitute(value, (*loc, key)) for key, value in node.items()}
        if isinstance(node, list):
            return [self.substitute(value, (*loc, index)) for index, value in enumerate(node)]
        return _VARIABLE.sub(lambda match: self._value(match, loc), node) if isinstance(node, str) else node

    def _value(self, match: re.Match[str], loc: Location) -> str:
        escaped, name = match.groups()
        if escaped:
            return match.group()[1:]
        found = self._environ.get(name, "")
        self.origins[loc] = f"{self.origins[loc]}, {name}" if loc in self.origins else name
        if not found or found != found.strip():
            state = "is not set: set it" if not found else "begins or ends with a blank or line end: take that away"
            self.problems.append(f"{dotted(loc)}: environment variable {name} {state}")
            self.unset.add(loc)
        return found.strip()
