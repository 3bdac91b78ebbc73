"""Port of the schema registry: schemas by id, which never change, and the newest of a subject, which does."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kgs_core.errors import PermanentError


class SchemaKind(StrEnum):
    """Language of a schema, as registries name it."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """Schema of a registry.

    Attributes:
        id: its number there; None where it was asked for by its GUID and the registry did not tell.
        text: the schema: JSON for Avro and JSON Schema; for Protobuf a FileDescriptorProto in base64.
        references: (name that the schema imports it by, schema), with what those refer to themselves.
    """

    id: int | None
    kind: SchemaKind
    text: str
    references: Sequence[tuple[str, "RegisteredSchema"]] = ()


class UnknownSchemaError(PermanentError):
    """The registry answered: there is no such schema."""


class SchemaRegistry(Protocol):
    """A schema registry. May be used by several threads.

    What it answered by id or GUID is kept for good; that there is none is not.
    """

    def by_id(self, number: int) -> RegisteredSchema:
        """The schema of this id.

        Raises:
            UnknownSchemaError: there is none.
            TransientError: the registry did not answer.
        """

    def by_guid(self, guid: str) -> RegisteredSchema:
        """The schema of this GUID; raises as `by_id`."""

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject; raises as `by_id`."""
