"""The controller's transitions as a picture."""

from kgs_core.group.view.transitions import TRANSITIONS, State


def mermaid() -> str:
    """The table as a mermaid state diagram; the edges that share both ends share an arrow."""
    names = {state: state.replace(" ", "") for state in State}
    lines = ["stateDiagram-v2", f"    [*] --> {names[State.SYNCHRONIZE]}"]
    lines += [f'    state "{state}" as {name}' for state, name in names.items() if name != state]
    labels: dict[tuple[State, State], list[str]] = {}
    for (state, cause), to in TRANSITIONS.items():
        labels.setdefault((state, to), []).append(cause)
    lines += [f"    {names[a]} --> {names[b]}: {', '.join(causes)}" for (a, b), causes in labels.items()]
    return "\n".join([*lines, f"    {names[State.ENDED]} --> [*]"])
