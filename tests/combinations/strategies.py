"""Random cases, small ones first."""

from hypothesis import strategies as st

from tests.combinations import case as steps
from tests.combinations.case import ADDED, FIELD_FORMATS, REGISTRY_FORMATS, Case, Record, Rule
from tests.combinations.values import WHATS

POINTS = (
    *("fetched", "written", "file-written", "before-commit", "after-dead-letter-commit", "after-commit"),
    *("before-columns", "columns-added", "route-claimed", "side-fenced", "after-side-commit"),
    *("intent-left", "entry-made"),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Rules that kgs.yaml may have."""
    form = draw(st.sampled_from(("json", "string", "raw", *REGISTRY_FORMATS)))
    key = draw(st.sampled_from(("raw", "string", "json")))
    has_column = form in FIELD_FORMATS or key == "string"
    route = has_column and draw(st.booleans()) and draw(st.booleans())
    newest = "" if route else draw(st.sampled_from(("", "delete", "ignore")))
    shared = draw(st.booleans()) and draw(st.booleans())
    order = draw(st.sampled_from(("offset", "timestamp"))) if newest else "offset"
    if newest == "delete" and shared:
        newest = "ignore"  # offsets of two topics cannot be compared, and times bring deleted keys back
    by = "_key"
    if newest == "ignore" and has_column and draw(st.booleans()):
        by = "s" if form in FIELD_FORMATS else "key"
    if by == "s":
        order = "timestamp"  # a key that is in two partitions
    return Rule(
        format=form,
        key=key,
        layout=draw(st.sampled_from(("", "partition", "partition few"))) if has_column else "",
        sorted=draw(st.booleans()),
        route=route,
        evolve=draw(st.sampled_from(("none", "add_columns"))) if form != "raw" and form != "string" else "none",
        rescue=form in ("json", "json_schema") and draw(st.booleans()),
        added=draw(st.sampled_from(ADDED)) if form == "json" else "long",
        shared=shared,
        newest=newest,
        order=order,
        by=by,
        commit=draw(st.sampled_from(("direct", "combined", "auto"))),
    )


def whats(rule: Rule) -> st.SearchStrategy[str]:
    """Kinds of values that differ in the rule's format."""
    found = ["good", "good", "tombstone", "broken", "bad header", "odd tombstone", "empty"]
    found += ["bad key"] if rule.key != "raw" else []
    found += ["later", "later", "wrong"] if rule.format in FIELD_FORMATS else []
    found += ["unknown field", "long beside"] if rule.format in ("json", "json_schema") else []
    found += ["long", "wrong p", "wrong c"] if rule.format == "json" else []
    assert set(found) <= set(WHATS)
    return st.sampled_from(found)


def sends(rule: Rule) -> st.SearchStrategy[steps.Send]:
    """Some records."""
    record = st.builds(
        Record,
        what=whats(rule),
        key=st.sampled_from(("k1", "k2", "k3", None)),
        s=st.sampled_from(("a", "b", "c", "", None)) if rule.format in FIELD_FORMATS else st.just("a"),
        topic=st.sampled_from(rule.topics),
    )
    return st.builds(steps.Send, st.lists(record, min_size=1, max_size=5).map(tuple))


@st.composite
def _until(draw: st.DrawFn, *points: str) -> str:
    point = draw(st.sampled_from(("", "", *points)))
    return f"{point}:{draw(st.integers(1, 3))}" if point else ""


def rounds() -> st.SearchStrategy[steps.Round]:
    """A round of either consumer."""
    return st.builds(
        steps.Round,
        who=st.sampled_from((0, 0, 1)),
        most=st.sampled_from((0, 0, 1, 60)),
        waits=st.sampled_from((False, False, False, True)),
        ahead=st.booleans(),
        looks=st.sampled_from((True, True, False)),
        until=_until(*POINTS),
    )


def steps_of(rule: Rule) -> st.SearchStrategy[steps.Step]:
    """Steps that make sense under a rule."""
    found: list[st.SearchStrategy[steps.Step]] = [
        *[sends(rule)] * 3,
        *[rounds()] * 5,
        st.builds(steps.Thaw),
        st.builds(steps.Restart, st.sampled_from((0, 1))),
        st.builds(steps.Redrive, _until("redrive-written", "redriven")),
        st.builds(steps.Maintain),
        st.builds(steps.Adopt, _until("adopted", "adopted")),
    ]
    if rule.newest:
        found += [st.builds(steps.Materialize, _until("latest-read", "latest-merged"))] * 2
    if rule.format in REGISTRY_FORMATS:
        how = st.sampled_from(("answers", "answers", "away", "forgets 1", "forgets 2"))
        found += [*[st.builds(steps.Registry, how)] * 2, st.builds(steps.Register)]
    if rule.format == "json":
        found += [st.builds(steps.Change)]
    if not rule.newest or (rule.order == "timestamp" and rule.newest == "ignore"):
        topic = st.sampled_from(rule.topics)
        found += [st.builds(steps.MakeAgain, topic), st.builds(steps.Accept, topic)]
    return st.one_of(found)


@st.composite
def cases(draw: st.DrawFn, most_steps: int = 12) -> Case:
    """A rule and a history."""
    rule = draw(rules())
    return Case(rule, tuple(draw(st.lists(steps_of(rule), min_size=2, max_size=most_steps))))
