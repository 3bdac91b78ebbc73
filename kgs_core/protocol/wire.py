"""The JSON objects of the records: what each must hold, and within which limits."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kgs_core.protocol.messages import Phase, RunState

VERSION: Literal[1] = 1
MAX_TEXT = 1000

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Topic = Annotated[str, Field(min_length=1, max_length=249)]
_Partition = Annotated[int, Field(ge=0, lt=2**31)]
_Consumer = Annotated[int, Field(ge=1, lt=10**9)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_NotNegative = Annotated[float, Field(ge=0)]
_Id = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]
WireSet = dict[_Topic, Annotated[tuple[_Partition, ...], Field(strict=False)]]
_V = TypeVar("_V")
_ByPartition = dict[_Topic, dict[_Partition, _V]]


class Wire(BaseModel):
    """Base of all records: strict, finite, unknown fields passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class WireVersioned(Wire):
    """Base of a record's value, with its version."""

    version: Literal[1] = VERSION


class WireMember(Wire):
    """One incarnation of one consumer."""

    consumer: _Consumer
    incarnation: _Id


class WireChange(Wire):
    """One change of the Target."""

    time_ms: _Count
    reason: _Text
    moved: _Count
    rscore: _NotNegative
    consumers: _Count
    duration_s: _NotNegative | None = None


class WireTarget(WireVersioned):
    """Record of a Target."""

    type: Literal["target"] = "target"
    algorithm: Annotated[str, Field(min_length=1, max_length=100)]
    assignment: _ByPartition[_Consumer]
    spares: Annotated[tuple[_Consumer, ...], Field(strict=False)]
    speeds_bytes_per_s: _ByPartition[_NotNegative]
    capacity_bytes_per_s: _NotNegative
    rscore: _NotNegative
    reason: _Text
    known: Annotated[tuple[WireMember, ...], Field(strict=False)]
    set_aside: Annotated[tuple[_Consumer, ...], Field(strict=False)]
    time_ms: _Count
    measurement_offset: _Count | None = None
    pinned: WireSet = {}
    history: Annotated[tuple[WireChange, ...], Field(strict=False)] = ()
    lake_root: Annotated[str, Field(max_length=4096)] | None = None
    suspect_after_s: _NotNegative | None = None
    config_hashes: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(strict=False)] = ()


class WireOrder(WireVersioned, WireMember):
    """Record of what one incarnation shall own."""

    type: Literal["assignment"] = "assignment"
    owned: WireSet
    revoking: WireSet
    coming: WireSet
    retire: bool


class WireSign(WireVersioned, WireMember):
    """A sign of life."""

    sequence: _Count
    phase: Annotated[Phase, Field(strict=False)]
    bytes_per_s: _NotNegative
    batch_age_s: _NotNegative | None


class WireHeartbeat(WireSign):
    """A short report."""

    type: Literal["heartbeat"] = "heartbeat"


class WireProcess(Wire):
    """The process of an incarnation."""

    host: Annotated[str, Field(max_length=255)]
    boot_id: Annotated[str, Field(max_length=64)]
    pid: _Count
    start_ticks: _Count
    run_id: Annotated[str, Field(max_length=100)] = ""
    machine_id: Annotated[str, Field(max_length=64)] = ""
    pid_namespace: _Count = 0


class WireReport(WireSign):
    """A full report."""

    type: Literal["report"] = "report"
    process: WireProcess
    applied: _Count | None
    owned: WireSet
    stopped: _ByPartition[_Text] = {}
    positions: _ByPartition[_Count] = {}
    kgs_version: Annotated[str, Field(max_length=100)] = ""
    config_hash: Annotated[str, Field(max_length=100)] = ""
    last_drain_s: _NotNegative | None = None
    max_drain_s: _NotNegative | None = None
    drains: _Count = 0
    bad_shares: dict[_Topic, Annotated[float, Field(ge=0, le=1)]] = {}
    ready: WireSet | None = None
    unready: _ByPartition[_Text] = {}
    ending: Annotated[str, Field(max_length=100)] | None = None  # a later kgs may know others: no reason to refuse it
    why: _Text = ""


class WireStarting(WireVersioned, WireMember):
    """A process that has not joined."""

    type: Literal["starting"] = "starting"
    process: WireProcess
    why: _Text


class WireDesiredState(WireVersioned):
    """Record of what people want of the group."""

    type: Literal["wish"] = "wish"
    state: Annotated[RunState, Field(strict=False)]
    by: _Text
    time_ms: _Count


class WireDesiredVersion(WireVersioned):
    """Record of what consumers should run."""

    type: Literal["wanted"] = "wanted"
    kgs_version: Annotated[str, Field(max_length=100)]
    config_hash: Annotated[str, Field(max_length=100)]
    by: _Text
    time_ms: _Count


_Wire = WireTarget | WireOrder | WireHeartbeat | WireReport | WireStarting | WireDesiredState | WireDesiredVersion
_Record = Annotated[_Wire, Field(discriminator="type")]
RECORD: TypeAdapter[_Wire] = TypeAdapter(_Record)
