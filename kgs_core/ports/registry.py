"""Schemas of a registry: by id, which never change; `kgs_core.registry` asks for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from kgs_core.errors import PermanentError


class SchemaKind(StrEnum):
    """Language of a schema, as registries name it."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredSchema:
    """Schema of a registry; equal where all of it is.

    Attributes:
        id: its number there; None where it was asked for by its GUID and the registry did not tell.
        text: the schema: JSON for Avro and JSON Schema; for Protobuf a FileDescriptorProto in base64.
        references: (name that the schema imports it by, schema), with what those refer to themselves.
    """

    id: int | None
    kind: SchemaKind
    text: str
    references: Sequence[tuple[str, "RegisteredSchema"]] = ()
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Taken once: what is referred to by many would be walked through as often."""
        own = repr((self.id, self.kind.value, self.text, [(name, of.digest) for name, of in self.references]))
        object.__setattr__(self, "digest", sha256(own.encode(errors="surrogatepass")).digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegisteredSchema) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class UnknownSchemaError(PermanentError):
    """The registry answered: there is no such schema.

    Attributes:
        for_s: Seconds for which it has said so to this process without a break; infinite where time mends nothing. A
            registry that lags, has just started or was restored says so of schemas that it has a moment later.
    """

    def __init__(self, message: str, for_s: float = math.inf) -> None:
        self.for_s = for_s
        super().__init__(message)
