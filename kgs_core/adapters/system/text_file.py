"""Text files that people name on the command line."""

from pathlib import Path

from kgs_core.errors import ConfigError


def read_text(path: Path) -> str:
    """The text of a file that people name.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise ConfigError([f"{path}: {(e.strerror or 'unreadable').lower()}: name another file"]) from None
    except UnicodeDecodeError as e:
        raise ConfigError([f"{path}: byte {e.start} is no UTF-8: save it as UTF-8 text"]) from None
    except ValueError:  # a NUL in the name
        raise ConfigError([f"{str(path)!r}: not the name of a file: name another"]) from None
