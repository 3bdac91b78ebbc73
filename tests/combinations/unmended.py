"""The property with a mend taken out: `python -m tests.combinations.unmended [MEND...]` prints the case that it finds.

A property that finds nothing proves little; this shows that it finds what was once there (`test_combinations.FOUND`).
"""

import logging
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Mend:
    """One place of the source.

    Attributes:
        module: where it is.
        now: its text.
        before: the text that was there.
    """

    module: str
    now: str
    before: str


MENDS = {
    "a registry that forgets": Mend(
        "kgs_core.ingest.worker.sorted_records", "            found.unsettled.add(i)\n", "            pass\n"
    ),
    "records held of a deleted topic": Mend(
        "kgs_core.ingest.fetch.fetch_client", "if ids.get(topic) != self.topic_ids.get(topic)}", "if False}"
    ),
    "tombstones of texts": Mend(
        "kgs_core.config.rule.value_formats", '{"value": "string"}, takes_null=True', '{"value": "string"}'
    ),
    "a number that no decimal takes": Mend(
        "kgs_core.ingest.formats.json.json_faults",
        "        except Exception:",
        "        except (RecursionError, ValueError):",
    ),
    "a nested column of a derived table": Mend(
        "kgs_core.lake.delta.table_changes",
        "else pa.nulls(rows.num_rows, f.type)",
        "else pa.array([None] * rows.num_rows, pa.string()).cast(f.type)",
    ),
}
"""Kind of fault -> its mend."""
MOST = 3000
"""Cases that are tried."""


class _Loader(SourceFileLoader):
    """The module as it was; nothing of it is kept compiled."""

    mend: Mend

    def get_data(self, path: str) -> bytes:
        text = super().get_data(path).decode()
        assert text.count(self.mend.now) == 1, f"{path}: the mend is not there once: {self.mend.now}"
        return text.replace(self.mend.now, self.mend.before).encode()

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError(path)


class _Finder(MetaPathFinder):
    def __init__(self, mend: Mend) -> None:
        self._mend = mend

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mend.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin)
        spec.loader.mend = self._mend
        return spec


def found_without(mend: Mend) -> str:
    """The first case that fails without a mend, and what the judge says; in a process that has imported nothing.

    It is not made smaller: the property does that where it fails, and it takes longer than the search.

    Raises:
        NoSuchExample: none of `MOST` cases fails.
    """
    logging.disable()  # of what is refused and waits there is much
    sys.meta_path.insert(0, _Finder(mend))
    from hypothesis import HealthCheck, Phase, find, settings

    from tests.combinations.case import Case
    from tests.combinations.strategies import cases
    from tests.combinations.world import problems_of

    tried: list[Case] = []

    def problems(case: Case) -> list[str]:
        tried.append(case)
        with tempfile.TemporaryDirectory() as folder:
            return problems_of(case, Path(folder) / "lake")

    checked = settings(
        max_examples=MOST,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case = find(cases(), lambda each: problems(each) != [], settings=checked)
    return "\n".join([f"case {tried.index(case) + 1}: {case!r}", *problems(case)])


def main(names: Sequence[str]) -> None:
    if len(names) == 1:
        print(f"without the mend of {names[0]}:\n{found_without(MENDS[names[0]])}", flush=True)
        return
    import subprocess

    for name in names or MENDS:
        subprocess.run([sys.executable, "-m", "tests.combinations.unmended", name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
