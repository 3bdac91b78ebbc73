"""Settings of lineage: where consumers say what they read and write, as events of OpenLineage."""

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from kgs_core.config.rule.section import Secret, Section
from kgs_core.config.secret_files import reference_problems


class LineageSettings(Section):
    """Settings of OpenLineage events; the section's being there turns them on.

    Attributes:
        url: of the server; None: as OpenLineage's own environment or file says.
        namespace: of the group's job; None: as OPENLINEAGE_NAMESPACE says, or `kgs`.
    """

    url: (
        Annotated[
            str, StringConstraints(pattern=r"^https?://[^\s@?#]+$"), Field(description="give http(s)://host:port")
        ]
        | None
    ) = None
    token: Annotated[str | None, Secret()] = Field(default=None, repr=False)
    namespace: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    timeout_s: Annotated[float, Field(ge=0.1, le=60, allow_inf_nan=False)] = 5.0

    @model_validator(mode="after")
    def _token_is_named(self) -> Self:
        if problems := list(reference_problems(self.secrets)):
            raise ValueError("; ".join(problems))
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """What may stand in a file of its own: name -> value."""
        return {} if self.token is None else {"token": self.token}
