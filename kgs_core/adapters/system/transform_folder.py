"""Folder where the functions of `transform` and `transform_arrow` are looked for: that of kgs.yaml, in every process.

That folder comes first, then what is installed; the working directory never counts. A worker of Spark is a process of
its own, which finds the folder by its environment.
"""

import os
import sys
from pathlib import Path

from kgs_core.config import Settings

_PATH = "PYTHONPATH"


def use_folder_of(config_file: Path, settings: Settings) -> None:
    """Put the folder of kgs.yaml first on the path of this process and of its children; before Spark starts.

    Only where a rule names a function: a group without one loads no code from there. That the working directory is not
    on the path is the business of whoever starts a process: `-P`, and `spark.executorEnv.PYTHONSAFEPATH`.
    """
    if not any(rule.transform or rule.transform_arrow for rule in settings.topics):
        return
    folder = str(config_file.resolve().parent)
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    others = [entry for entry in os.environ.get(_PATH, "").split(os.pathsep) if entry not in ("", folder)]
    os.environ[_PATH] = os.pathsep.join([folder, *others])
