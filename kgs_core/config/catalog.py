"""Settings of the catalogue that the lake's tables are registered in."""

import re
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from kgs_core.config.rule.section import OptionalHttpAddress, Section, key_of
from kgs_core.config.rule.topic_names import IN_BRACES
from kgs_core.config.secret_files import check_references

CATALOGS = {
    "unity": "kgs_core.catalog.unity:open_unity",
    "glue": "kgs_core.catalog.glue:open_glue",
}
"""Name, as `catalog.kind` takes it -> what makes the port `Catalog`, loaded when tables are registered."""
NAME_PARTS = {"unity": 3, "glue": 2}
"""Parts of a table's name in each: catalog.schema.table, database.table."""
_WORDS = ("group", "folder", "last", "table")
_FIXED = re.compile(r"[A-Za-z0-9_]*")
_ODD = re.compile(r"[^a-z0-9_]")
MAX_PART = 255


class CatalogSettings(Section):
    """Settings of the catalogue: which, where, who asks it, and what tables are called in it.

    Attributes:
        kind: a name of `CATALOGS`.
        url: of the server; needed for Unity Catalog, and for Glue only where it is not AWS's own.
        name: what tables are called, with `{group}`, and `{folder}`, `{last}` or `{table}` of the table's path.
        token: Unity Catalog's bearer token, or `${file:...}`, which is read anew for each run.
        timeout_s: how long an answer may take; tables are registered again a quarter of an hour later.
    """

    kind: Annotated[str, key_of(CATALOGS)]
    name: str
    url: OptionalHttpAddress = None
    token: str | None = Field(default=None, repr=False)
    timeout_s: ClassVar[float] = 10.0

    @field_validator("name")
    @classmethod
    def _name_has_words_that_are_known(cls, name: str) -> str:
        if unknown := sorted(set(IN_BRACES.findall(name)) - set(_WORDS)):
            raise ValueError(f"{{{unknown[0]}}} is not known: {', '.join(f'{{{word}}}' for word in _WORDS)} are")
        parts = name.split(".")
        if any(not part or not _FIXED.fullmatch(IN_BRACES.sub("x", part)) for part in parts):
            raise ValueError("write parts of letters, digits, '_' and {words}, with dots between, none empty")
        if "{table}" not in name and "{last}" not in name:
            raise ValueError("it needs {table}, or {last}, in it: else all tables would have one name")
        return name

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        wanted = NAME_PARTS[self.kind]
        if len(self.name.split(".")) != wanted:
            parts = "catalog.schema.table" if wanted == 3 else "database.table"  # noqa: PLR2004
            raise ValueError(f"name: '{self.name}': a table of kind '{self.kind}' is called {parts}")
        if self.kind == "unity" and self.url is None:
            raise ValueError("kind 'unity' needs the server's address: give 'url'")
        if self.kind == "glue" and self.token:
            raise ValueError("kind 'glue' signs in as AWS's clients do (environment, web identity, role): drop 'token'")
        check_references({"token": self.token})
        return self

    def name_of(self, group: str, table: str) -> str:
        """Name of a table in the catalogue, in lower case: catalogues do not tell names by case.

        Args:
            table: path under the lake's root.

        Raises:
            ValueError: the template gives it none; it says why.
        """
        *folders, last = table.split("/")
        words = {"group": group, "folder": "_".join(folders), "last": last, "table": table.replace("/", "_")}
        name = IN_BRACES.sub(lambda word: _ODD.sub("_", words[word[1]].lower()), self.name).lower()
        for part in name.split("."):
            if not part:
                raise ValueError(f"catalog.name '{self.name}': it lies in no folder, so {{folder}} is empty")
            if len(part) > MAX_PART:
                raise ValueError(f"catalog.name '{self.name}': '{part[:40]}...' has more than {MAX_PART} characters")
        return name
