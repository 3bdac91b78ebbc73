"""What docs/architecture.md says of the controller is what the controller goes by."""

import re
from pathlib import Path

from tests.core.group.controller.state_diagram import mermaid

PAGE = Path(__file__).parents[4] / "docs" / "architecture.md"


def test_the_state_diagram_is_the_transition_table():
    diagrams = re.findall(r"^```mermaid\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (of_states,) = [diagram for diagram in diagrams if diagram.startswith("stateDiagram")]
    assert of_states == mermaid(), "put the output of tests.core.group.controller.state_diagram.mermaid() there"
