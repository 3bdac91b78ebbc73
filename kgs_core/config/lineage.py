"""Settings of lineage: where consumers say what they read and write, as events of OpenLineage."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from kgs_core.config.rule.section import OptionalHttpAddress, Secret, Section
from kgs_core.config.secret_files import check_references


class LineageSettings(Section):
    """Settings of OpenLineage events; the section's being there turns them on.

    Attributes:
        url: of the server; None: as OpenLineage's own environment or file says.
        timeout_s: how long an answer of the server may take; what is lost is lost.
    """

    url: OptionalHttpAddress = None
    token: Annotated[str | None, Secret()] = Field(default=None, repr=False)
    timeout_s: ClassVar[float] = 5.0

    @model_validator(mode="after")
    def _token_is_named(self) -> Self:
        check_references(self.secrets)
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """What may stand in a file of its own: name -> value."""
        return {} if self.token is None else {"token": self.token}
