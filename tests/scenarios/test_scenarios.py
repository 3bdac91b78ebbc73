"""Every scenario of this folder goes as it is written, and no invariant is broken on the way."""

from pathlib import Path

import pytest

from tests.scenarios.transcript import FOLDER, played


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    text = path.read_text()
    seen, problems = played(text)
    assert problems == []
    assert seen == text
