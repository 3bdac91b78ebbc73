"""A rule's route: rows of some values of a column go into tables of their own."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, ValidationError

from kgs_core.config.rule.section import Section
from kgs_core.config.rule.topic_names import PlainPath, path_under_root

Value = str | int | bool
ROUTED_BY = {"string": str, "boolean": bool, "byte": int, "short": int, "int": int, "long": int}
"""Type of a column that rows can be routed by -> what a value of it is in kgs.yaml."""
_IN_WORDS = {str: "a text: put it in quotes", bool: "true or false", int: "a whole number"}
_PATH = TypeAdapter(PlainPath)


def _tables(value: Any) -> dict[Value, str]:
    if not isinstance(value, dict) or not value:
        raise ValueError("give each value its table, as in {order: bronze/orders}")
    found: dict[Value, str] = {}
    for key, path in value.items():
        if not isinstance(key, str | int):
            raise ValueError(f"value {key!r}: give a text, a whole number, true or false")  # noqa: TRY004 - pydantic
        try:
            found[key] = path_under_root(_PATH.validate_python(path, strict=True))
        except ValidationError:
            raise ValueError(
                f"value {text_of(key)}: its table has characters beside A-Z a-z 0-9 . _ - / {{}}"
            ) from None
        except ValueError as e:
            raise ValueError(f"value {text_of(key)}: its table {e}") from None
    return found


def text_of(value: Value) -> str:
    """A value as text, the same for every type of column that it may stand in: `true`, `17`, `order`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Route(Section):
    """Tables for the rows of some values; rows of every other value, and of null, are the rule's own table's."""

    column: Annotated[str, Field(min_length=1)]
    tables: Annotated[dict[Value, str], PlainValidator(_tables)]

    def problem_of(self, kind: str) -> str:
        """Why rows cannot be routed by a column of this type, or not by these values; empty: they can."""
        wanted = ROUTED_BY.get(kind)
        if wanted is None:
            return f"route: column '{self.column}' is {kind}: take one of text, whole numbers or booleans"
        wrong = [value for value in self.tables if type(value) is not wanted]
        if wrong:
            return f"route: column '{self.column}' is {kind}, and value {text_of(wrong[0])} is not {_IN_WORDS[wanted]}"
        return ""


def problems_of_route(route: Route | None, own: str, columns: Mapping[str, str], *, is_all: bool) -> list[str]:
    """What is wrong with a route as far as its rule tells.

    Args:
        own: path of the rule's own table.
        columns: column -> type, of those that the rule says.
        is_all: it has no others.
    """
    if route is None:
        return []
    found = []
    if route.column in columns:
        found.append(route.problem_of(columns[route.column]))
    elif is_all:
        found.append(f"route: there is no column '{route.column}'; there are {', '.join(columns)}")
    paths = {path.lower(): path for path in route.tables.values()}
    for path in dict.fromkeys(route.tables.values()):
        if path.lower() in (own.lower(), f"{own.lower()}_dead_letters"):
            found.append(f"route: table '{path}' is the rule's own: leave its value out, or give it another table")
        elif paths[path.lower()] != path:
            found.append(f"route: tables '{path}' and '{paths[path.lower()]}' differ only in case: write them alike")
    return [problem for problem in found if problem]
