"""Reads kgs.yaml from disk."""

import logging
import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.settings import Settings
from kgs_core.config.text import parse_settings
from kgs_core.config.weak import weak_settings
from kgs_core.config.yaml_tree import MAX_BYTES
from kgs_core.errors import ConfigError

_log = logging.getLogger(__name__)


def load_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """Settings out of a file; a relative `lake.root` is taken relative to the file's folder.

    An `avro_schema` that is the path of a file is replaced by what stands there: consumers go by that, and their
    configuration is another one when it changes.

    What they give away is said once, as a warning.

    Raises:
        ConfigError: no such file, not a file, not readable, or what `parse_settings` refuses.
    """
    settings = parse_settings(_read(path), str(path), environ)
    rules = tuple(_with_schema(rule, number, path) for number, rule in enumerate(settings.topics))
    if rules != settings.topics:
        settings = settings.model_copy(update={"topics": rules})
    for weakness in weak_settings(settings):
        _warn_once(f"{path}: {weakness}")
    if "://" in settings.lake.root:
        return settings
    # resolved here: the folder is the file's whatever the process's own is, now and later
    root = path.parent.resolve() / settings.lake.root
    return settings.model_copy(update={"lake": settings.lake.model_copy(update={"root": str(root)})})


def _with_schema(rule: TopicRule, number: int, path: Path) -> TopicRule:
    given, where = rule.avro_schema, f"{path}: topics[{number}].avro_schema"
    if given is None or given.lstrip().startswith(("{", "[", '"')):
        return rule
    text = _read(path.parent.resolve() / given, "name a file with the schema, or write it here as JSON")
    if len(text) > MAX_BYTES:
        raise ConfigError([f"{where}: {given} has more than {MAX_BYTES} bytes: is it an Avro schema?"])
    try:
        return rule.model_copy(update={"avro_schema": text.decode()})
    except UnicodeDecodeError:
        raise ConfigError([f"{where}: {given} is not UTF-8: name an Avro schema as JSON"]) from None


@cache
def _warn_once(text: str) -> None:
    """Some commands read their file several times."""
    _log.warning("%s", text)


def _read(path: Path, way_out: str = "`kgs init` makes one, or name another file") -> bytes:
    try:
        # without O_NONBLOCK opening a pipe that nobody writes to would wait for ever
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError([f"{path}: not a file: name the configuration file itself"])
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError([f"{path}: no such file: {way_out}"]) from None
    except OSError as e:
        raise ConfigError([f"{path}: {(e.strerror or 'unreadable').lower()}: fix the file or name another"]) from None
    except ValueError:  # a NUL in the name
        raise ConfigError([f"{str(path)!r}: not the name of a file: name another"]) from None
