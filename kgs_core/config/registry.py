"""Settings of the schema registry, by the interface that Confluent's has."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from kgs_core.config.rule.section import HttpAddress, Secret, Section
from kgs_core.config.secret_files import check_references


class RegistrySettings(Section):
    """Settings of the schema registry: where it is, and who asks it.

    Attributes:
        timeout_s: how long an answer of the registry may take; whoever asked asks again.
    """

    url: HttpAddress
    username: str | None = None
    password: Annotated[str | None, Secret()] = Field(default=None, repr=False)
    token: Annotated[str | None, Secret()] = Field(default=None, repr=False)
    timeout_s: ClassVar[float] = 5.0

    @model_validator(mode="after")
    def _one_way_to_sign_in(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("give both 'username' and 'password', or neither")
        if self.username is not None and self.token is not None:
            raise ValueError("give 'username' and 'password', or 'token', not both")
        check_references(self.secrets)
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """What may stand in files of its own: name -> value or path."""
        named = {"username": self.username, "password": self.password, "token": self.token}
        return {name: value for name, value in named.items() if value is not None}
