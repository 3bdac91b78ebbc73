"""Random cases, small ones first."""

from hypothesis import strategies as st

from tests.combinations import case as steps
from tests.combinations.case import ADDED, FIELD_FORMATS, REGISTRY_FORMATS, Case, Record, Rule
from tests.combinations.values import WHATS

LETTER = "after-dead-letter-commit"
POINTS = ("fetched", "written", "file-written", "after-commit", *["before-commit"] * 2, *[LETTER] * 4)
COMBINED_POINTS = ("intent-left", "entry-made")
SIDE_POINTS = ("route-claimed", "side-fenced", *["after-side-commit"] * 4)
_JUDGEMENTS = ("judgement-announced", "judgement-fenced", "judgement-taken")
REGISTRY_POINTS = ("written", *_JUDGEMENTS, LETTER, LETTER, "before-commit")
END_POINTS = ("end-noted", "redrives-refused", "rows-rewritten", "append-only-off", "rows-removed")
EVOLVE_POINTS = ("before-columns", "columns-added")


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    form = draw(st.sampled_from(("json", "string", "raw", *REGISTRY_FORMATS)))
    key = draw(st.sampled_from(("raw", "string", "json")))
    has_column = form in FIELD_FORMATS or key == "string"
    route = has_column and draw(st.sampled_from((False, False, True)))
    newest = "" if route else draw(st.sampled_from(("", "remove", "column", "ignore")))
    changes = bool(newest) and form in FIELD_FORMATS and draw(st.booleans())
    shared = draw(st.booleans()) and draw(st.booleans())
    order = draw(st.sampled_from(("offset", "timestamp"))) if newest else "offset"
    if newest == "remove" and shared and not (changes and order == "offset"):
        newest = "ignore"  # offsets of two topics cannot be compared, and times bring deleted keys back
    if newest == "column" and shared and not changes:
        order = "timestamp"
    by = "_key"
    if newest == "ignore" and has_column and draw(st.booleans()):
        by = "s" if form in FIELD_FORMATS else "key"
    if by == "s":
        order = "timestamp"  # a key that is in two partitions
    hides = () if route or by == "s" else ("null", "truncate(1)")
    masks = {"s": () if route else ("hash", *hides), "n": ("hash",)} if form in FIELD_FORMATS else {}
    masks |= {"_key": ("hash",)}
    drawn = draw(st.booleans()) and draw(
        st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in masks.items() if v})
    )
    return Rule(
        format=form,
        named=form in REGISTRY_FORMATS and draw(st.booleans()),
        key=key,
        partitioned=has_column and draw(st.booleans()),
        sorted=draw(st.booleans()),
        route=route,
        evolve=draw(st.sampled_from(("none", "add_columns"))) if form in FIELD_FORMATS else "none",
        rescue=form in ("json", "json_schema") and draw(st.booleans()),
        added=draw(st.sampled_from(ADDED)) if form == "json" else "long",
        shared=shared,
        newest=newest,
        order=order,
        by=by,
        vectors=bool(newest) and draw(st.booleans()),
        changes=changes,
        mask=tuple(drawn.items()) if drawn else (),
        commit=draw(st.sampled_from(("direct", "combined", "auto"))),
        small=draw(st.booleans()),
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
    record = st.builds(
        Record,
        what=whats(rule),
        key=st.sampled_from(("k1", "k2", "k3", None)),
        s=st.sampled_from(("a", "b", "c", "", None)) if rule.format in FIELD_FORMATS else st.just("a"),
        topic=st.sampled_from(rule.topics),
    )
    return st.builds(steps.Send, st.lists(record, min_size=1, max_size=5).map(tuple))


def _until(*points: str) -> st.SearchStrategy[str]:
    return st.builds(lambda point, n: f"{point}:{n}", st.sampled_from(points), st.sampled_from((1, 1, 1, 2, 3)))


def _rounds(until: st.SearchStrategy[str]) -> st.SearchStrategy[steps.Round]:
    return st.builds(
        steps.Round,
        who=st.sampled_from((0, 0, 1)),
        most=st.sampled_from((0, 0, 1, 60)),
        waits=st.sampled_from((False, False, False, True)),
        ahead=st.booleans(),
        looks=st.sampled_from((True, True, True, False)),
        until=until,
    )


def moves(rule: Rule) -> st.SearchStrategy[tuple[steps.Step, ...]]:
    """Some steps in a row that make sense under a rule."""
    send, whole, plain = sends(rule), _rounds(st.just("")), st.just(steps.Round())
    points = [*POINTS, *(SIDE_POINTS if rule.route else ()), *(EVOLVE_POINTS if rule.evolve != "none" else ())]
    frozen = _rounds(_until(*points, *(COMBINED_POINTS if rule.commit != "direct" else ())))
    found: list[st.SearchStrategy[tuple[steps.Step, ...]]] = [
        *[st.tuples(send, whole)] * 4,
        *[st.tuples(send, frozen, whole)] * 4,
        st.tuples(whole),
        st.tuples(send, frozen, whole | frozen, st.just(steps.Thaw())),
        st.tuples(frozen, st.builds(steps.Thaw)),
        st.tuples(st.builds(steps.Restart, st.sampled_from((0, 1)))),
        st.tuples(st.builds(steps.Redrive)),
        st.tuples(st.builds(steps.Redrive, _until("redrive-written", "redriven")), st.just(steps.Redrive())),
        st.tuples(st.builds(steps.Erase, st.sampled_from(("k1", "k2")), st.just("") | _until(*END_POINTS))),
        st.tuples(st.builds(steps.Maintain, st.booleans())),
        st.tuples(st.builds(steps.Adopt, st.just("") | _until("adopted"))),
    ]
    if rule.newest:
        until = st.just("") | st.just("") | _until("latest-read", "latest-written", "latest-merged")
        found += [st.tuples(st.builds(steps.Materialize, until))] * 4
    if rule.format in REGISTRY_FORMATS:
        forgets = st.builds(steps.Registry, st.sampled_from(("forgets 1", "forgets 2", "away")))
        answers = st.just(steps.Registry())
        dead = st.builds(steps.Round, until=st.sampled_from(REGISTRY_POINTS))
        found += [
            st.tuples(st.builds(steps.Register)),
            *[st.tuples(send, dead, forgets, plain, answers)] * 2,
            *[st.tuples(forgets, send, dead, answers, plain)] * 2,
            *[st.tuples(forgets, send, plain, dead, answers, plain, st.builds(steps.Thaw))] * 2,
            st.tuples(forgets, send, plain, answers, st.builds(steps.Redrive)),
        ]
    if rule.format == "json" or rule.route:
        found += [st.tuples(st.builds(steps.Change))]
    if not rule.newest or (rule.order == "timestamp" and rule.newest != "remove"):
        topic = st.shared(st.sampled_from(rule.topics), key="topic")
        again, accept = st.builds(steps.MakeAgain, topic), st.builds(steps.Accept, topic)
        held = st.just(steps.Round(waits=True))
        found += [
            st.tuples(again, accept),
            st.tuples(again, send, accept, whole),
            st.tuples(send, held, again, accept, send, plain),
        ]
    return st.one_of(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rule = draw(rules())
    return Case(rule, tuple(step for move in draw(st.lists(moves(rule), min_size=1, max_size=14)) for step in move))
