"""What others do in the middle of a call."""


def before(monkeypatch, owner, name, act, when=lambda *_: True):
    """Have `act` called once, before the first call of a function of `owner` that fits; empty once it was."""
    found, due = getattr(owner, name), [act]

    def call(*given, **more):
        if due and when(*given):
            due.pop()()
        return found(*given, **more)

    monkeypatch.setattr(owner, name, call)
    return due


def at_once(tasks, timeout_s=None):
    """All threads, or processes, to their end."""
    for task in tasks:
        task.start()
    for task in tasks:
        task.join(timeout_s)
