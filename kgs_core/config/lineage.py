"""Settings of lineage: where consumers say what they read and write, as events of OpenLineage."""

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from kgs_core.config.rule.section import Secret, Section
from kgs_core.config.secret_files import reference_problems

TIMEOUT_S = 5.0
"""How long an answer of the server may take; what is lost is lost."""


class LineageSettings(Section):
    """Settings of OpenLineage events; the section's being there turns them on.

    Attributes:
        url: of the server; None: as OpenLineage's own environment or file says.
    """

    url: (
        Annotated[
            str, StringConstraints(pattern=r"^https?://[^\s@?#]+$"), Field(description="give http(s)://host:port")
        ]
        | None
    ) = None
    token: Annotated[str | None, Secret()] = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _token_is_named(self) -> Self:
        if problems := list(reference_problems(self.secrets)):
            raise ValueError("; ".join(problems))
        return self

    @property
    def timeout_s(self) -> float:
        """How long an answer may take."""
        return TIMEOUT_S

    @property
    def secrets(self) -> dict[str, str]:
        """What may stand in a file of its own: name -> value."""
        return {} if self.token is None else {"token": self.token}
