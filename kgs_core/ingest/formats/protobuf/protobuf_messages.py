"""Messages of one Protobuf type to columns, many at once.

Theory of operation. Google's library (upb) alone judges whether a message is good, one at a time: ptars takes some
bytes that are no message, panics at others, and reads a field that was written twice otherwise. What upb has read it
writes anew, without unknown fields, each field once, in order; of these bytes ptars makes columns, all at once. It is
told of plain numbers, bytes, lists and messages alone (`protobuf_schema.ShapeBuilder`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool

from kgs_core.ingest.formats.parsed import MAX_REASON, Parsed, UnusableSchemaError
from kgs_core.ingest.formats.protobuf.protobuf_columns import FieldColumns
from kgs_core.ingest.formats.protobuf.protobuf_schema import Shape, ShapeBuilder
from kgs_core.ingest.formats.widening import widened, widening_problem


def natural_columns(descriptor: Descriptor) -> pa.Schema:
    """The columns that a message type is by itself.

    Raises:
        UnusableSchemaError: a field cannot become a column.
    """
    _, shapes = ShapeBuilder().message(descriptor, descriptor.fields)
    return pa.schema([pa.field(name, shape.type) for name, shape in shapes])


def usable_fields(descriptor: Descriptor) -> pa.Schema:
    """The columns that a message type is, without fields that cannot become one."""
    found = []
    for each in descriptor.fields:
        try:
            _, shapes = ShapeBuilder().message(descriptor, [each])
        except UnusableSchemaError:
            continue
        found += [pa.field(name, shape.type) for name, shape in shapes]
    return pa.schema(found)


class MessageDecoder:
    """Decoder of the messages of one type into given columns: by name, missing ones null, narrower ones made wider."""

    def __init__(self, descriptor: Descriptor, columns: pa.Schema) -> None:
        self._name = descriptor.full_name
        self._class: Any = GetMessageClass(descriptor)
        self._columns = columns
        builder = ShapeBuilder()
        wanted = [descriptor.fields_by_name[name] for name in columns.names if name in descriptor.fields_by_name]
        top, shapes = builder.message(descriptor, wanted)
        self._shapes: dict[str, Shape] = dict(shapes)
        self._unfit = {
            name: problem
            for name, shape in self._shapes.items()
            if (problem := widening_problem(shape.type, columns.field(name).type, name))
        }
        self._handler: Any = _handler(builder, top) if shapes else None

    def decode(self, messages: Sequence[bytes]) -> Parsed:
        """Columns of these messages; each is good or bad by itself."""
        bad: dict[int, str] = {}
        clean, read = self._clean(messages, bad)
        if self._handler is None:
            found: Mapping[str, pa.Array] = {}
        else:
            found, clean, read = self._columns_of(clean, read, bad)
        fields, columns, rows = FieldColumns(), [], np.arange(len(read), dtype=np.int64)
        for field in self._columns:
            if field.name not in self._shapes:
                columns.append(pa.nulls(len(read), field.type))
                continue
            shape = self._shapes[field.name]
            column = fields.column(found[shape.made_as], shape, rows, field.name)
            if field.name in self._unfit:
                fields.set_aside(rows[column.is_valid().to_numpy(zero_copy_only=False)], self._unfit[field.name])
                column = pa.nulls(len(read), field.type)
            columns.append(widened(column, field.type))
        table = pa.Table.from_arrays(columns, schema=self._columns)
        if fields.faults:
            bad |= {read[row]: reason[:MAX_REASON] for row, reason in fields.faults.items()}
            keep = [row for row in range(len(read)) if row not in fields.faults]
            table, read = table.take(pa.array(keep, pa.int64())), [read[row] for row in keep]
        return Parsed(table, read, bad)

    def _clean(self, messages: Sequence[bytes], bad: dict[int, str]) -> tuple[list[bytes], list[int]]:
        """The good messages as upb writes them, and which they are."""
        parse, clean, read = self._class.FromString, [], []
        for i, value in enumerate(messages):
            try:
                message = parse(value)
            except DecodeError:
                bad[i] = f"not a message of type {self._name}"[:MAX_REASON]
                continue
            message.DiscardUnknownFields()
            clean.append(message.SerializePartialToString(deterministic=True))  # partial: without `required` ones
            read.append(i)
        return clean, read

    def _columns_of(
        self, clean: list[bytes], read: list[int], bad: dict[int, str]
    ) -> tuple[Mapping[str, pa.Array], list[bytes], list[int]]:
        try:
            return self._decoded(clean), clean, read
        except ValueError:
            pass  # none is known that upb wrote; if there is one, it is bad, whatever stands beside it
        kept = []
        for n, value in enumerate(clean):
            try:
                self._decoded([value])
                kept.append(n)
            except ValueError as e:
                bad[read[n]] = f"cannot be made columns: {' '.join(str(e).split())}"[:MAX_REASON]
        clean, read = [clean[n] for n in kept], [read[n] for n in kept]
        return self._decoded(clean), clean, read

    def _decoded(self, clean: list[bytes]) -> Mapping[str, pa.Array]:
        try:
            batch = self._handler.list_to_record_batch(clean)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as e:  # pyo3's PanicException is neither importable nor an Exception
            raise ValueError(str(e)) from e
        return dict(zip(batch.schema.names, batch.columns, strict=True))


def _handler(builder: ShapeBuilder, top: str) -> Any:
    pool = DescriptorPool()
    pool.AddSerializedFile(builder.file.SerializeToString())
    file = pool.FindFileByName(builder.file.name)
    try:
        return HandlerPool([file]).get_for_message(file.message_types_by_name[top])
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # a panic, too: its reserved field numbers are taken by registries, not by this
        raise UnusableSchemaError(f"cannot be made columns: {' '.join(str(e).split())}"[:MAX_REASON]) from e
