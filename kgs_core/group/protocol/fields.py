"""Kinds of fields of the messages: their limits, and their form within a record.

Scalars are strict and numbers finite. Text for people is cut when it is written; partitions are grouped by topic.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar, get_args

from pydantic import Field, GetCoreSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema, core_schema

from kgs_core.model import ConsumerId, TopicPartition, by_topic, numbers_by_topic

MAX_TEXT = 1000
"""Of a text for people, characters."""

_V = TypeVar("_V")


def up_to(length: int) -> Any:  # as `pydantic.Field`
    """Limit of a string, characters."""
    return Field(strict=True, max_length=length)


def _whole(text: str) -> str:
    """Cut, and without halves of characters, which messages about files may have and JSON has not."""
    return text[:MAX_TEXT].encode(errors="replace").decode()


def _grouped(partitions: Collection[TopicPartition]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(numbers) for topic, numbers in numbers_by_topic(sorted(partitions)).items()}


def _nested(values: Mapping[TopicPartition, _V]) -> dict[str, dict[int, _V]]:
    return by_topic({tp: values[tp] for tp in sorted(values)})


def _flat_set(grouped: Mapping[str, Collection[int]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for topic, numbers in grouped.items() for number in numbers)


def _flat(nested: Mapping[str, Mapping[int, _V]]) -> dict[TopicPartition, _V]:
    return {
        TopicPartition(topic, number): value for topic, values in nested.items() for number, value in values.items()
    }


class _ByTopic:
    """Form of a set of partitions, {topic: [number]}, or of a value for each, {topic: {number: value}}."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        _, *value = get_args(source)
        within: Any = dict[_Key, value[0]] if value else tuple[_Partition, ...]  # type: ignore[valid-type]
        form = handler.generate_schema(dict[Topic, within])
        return core_schema.no_info_after_validator_function(
            _flat if value else _flat_set,
            form,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _nested if value else _grouped, return_schema=form
            ),
        )


Text = Annotated[str, up_to(MAX_TEXT), PlainSerializer(_whole)]
Label = Annotated[str, up_to(100)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Consumer = Annotated[ConsumerId, Field(strict=True, ge=1, lt=10**9)]
Topic = Annotated[str, Field(strict=True, min_length=1, max_length=249)]
_Key = Annotated[int, Field(ge=0, lt=2**31)]  # a number in JSON's quotes
_Partition = Annotated[_Key, Field(strict=True)]
Partitions = Annotated[frozenset[TopicPartition], _ByTopic()]
ByPartition = Annotated[Mapping[TopicPartition, _V], _ByTopic()]
