"""Pydantic models of kgs.yaml. Unknown keys are refused; quantities are plain numbers whose key ends in the unit."""

import hashlib
import json
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kgs_core.config.catalog import CatalogSettings
from kgs_core.config.classes import BillSettings
from kgs_core.config.kubernetes import KubernetesSettings
from kgs_core.config.lake_root import check_root
from kgs_core.config.membership import MembershipSettings
from kgs_core.config.monitor import MonitorSettings
from kgs_core.config.packing import PackingSettings
from kgs_core.config.passthrough import (
    OWN_OF_CLIENT,
    OWN_OF_SPARK,
    check_kafka_client,
    is_own_of_storage,
    is_secret,
    is_secret_of_spark,
)
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.masking import HASH
from kgs_core.config.rule.section import FINGERPRINT, Own, Passthrough, Secret, Section, none_is_empty
from kgs_core.config.rule.sharing import problems_of_sharing, problems_of_side_tables
from kgs_core.config.rule.topic_rule import HookName, TopicRule
from kgs_core.config.secret_files import LEAST_SECRET, check_references, secret_file

DEFAULT_FLEET = "local"
MASTER = "spark.master"
_HASH_DIGITS = 16

Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class KafkaSettings(Section):
    """Settings of Kafka: where the topics are."""

    bootstrap_servers: Annotated[
        str,
        StringConstraints(pattern=r"^[^\s,:@]+:\d{1,5}(,[^\s,:@]+:\d{1,5})*$"),
        Field(description="give host:port, or several with commas and no blanks between"),
        Own(),
    ]
    token_function: HookName | None = Field(default=None, description="write module:function")
    client: Annotated[Passthrough, Own(OWN_OF_CLIENT.__contains__), Secret(is_secret)] = Field(
        default_factory=dict, repr=False
    )

    @field_validator("client")
    @classmethod
    def _client_keeps_the_guarantees(
        cls, client: dict[str, str | int | bool], info: ValidationInfo
    ) -> dict[str, str | int | bool]:
        check_kafka_client(client, info.data.get("token_function"))
        return client

    @model_validator(mode="after")
    def _tokens_are_asked_for(self) -> Self:
        if self.token_function is not None and not self.client:  # a default is not validated
            check_kafka_client({}, self.token_function)
        return self


class LakeSettings(Section):
    """Settings of the lake: where the tables are, and how their logs are kept."""

    root: Annotated[str, AfterValidator(check_root)]
    storage_options: Annotated[
        dict[str, str], BeforeValidator(none_is_empty), Own(is_own_of_storage), Secret(is_secret)
    ] = Field(default_factory=dict, repr=False)
    checkpoint_interval: Annotated[int, Field(ge=2, le=1000)] = 50
    fsync: Annotated[bool, Field(description="give true or false")] = False
    mask_secret: Annotated[str | None, Secret()] = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _fsync_is_of_disks(self) -> Self:
        if self.fsync and "://" in self.root:
            raise ValueError("fsync is for local disks, a store keeps what it has taken: remove it")
        return self

    @field_validator("mask_secret")
    @classmethod
    def _secret_cannot_be_guessed(cls, secret: str | None) -> str | None:
        check_references({"mask_secret": secret})
        if secret is not None and secret_file(secret) is None and len(secret) < LEAST_SECRET:
            raise ValueError(f"shorter than {LEAST_SECRET} characters: take what openssl rand -hex 32 prints")
        return secret

    @field_validator("storage_options")
    @classmethod
    def _secrets_are_named(cls, options: dict[str, str]) -> dict[str, str]:
        check_references(options)
        return options


class ConsumerSettings(Section):
    """The size and the pace of one consumer's batches."""

    batch_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 16_000_000
    wait_time_s: Seconds = 1.0
    # Half a day at most: vacuum takes files of a day that no version has, as a batch's are until its commit
    batch_timeout_s: Annotated[float, Field(ge=1, le=43_200, allow_inf_nan=False)] = 300.0
    topics_refresh_s: Annotated[float, Field(ge=0.1, le=86_400, allow_inf_nan=False)] = 10.0

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.wait_time_s >= self.batch_timeout_s:
            raise ValueError(
                f"wait_time_s ({self.wait_time_s:g}) must be less than batch_timeout_s ({self.batch_timeout_s:g})"
            )
        return self

    @property
    def largest_batch_bytes(self) -> int:
        """How far a batch grows where commits take long: above 64 MB nothing is gained."""
        return max(self.batch_bytes, min(4 * self.batch_bytes, 64_000_000))


class SparkSettings(Section):
    """The Spark session of each consumer."""

    settings: Annotated[Passthrough, Own(OWN_OF_SPARK.__contains__), Secret(is_secret_of_spark)] = Field(
        default_factory=dict, repr=False
    )

    @property
    def master(self) -> str:
        """Where Spark runs. One core per consumer: the consumer is the unit that is scaled."""
        return str(self.settings.get(MASTER, "local[1]"))

    @classmethod
    def on(cls, master: str) -> "SparkSettings":
        """Settings that say nothing but where Spark runs."""
        return cls(settings={MASTER: master})


class Settings(Section):
    """The whole of kgs.yaml."""

    group: Annotated[
        str,
        StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,100}$"),
        Field(description="use 1 to 100 of a-z A-Z 0-9 . _ -"),
    ]
    kafka: KafkaSettings
    lake: LakeSettings
    topics: Annotated[tuple[TopicRule, ...], Field(strict=False)]
    registry: RegistrySettings | None = None
    catalog: Annotated[CatalogSettings | None, Own()] = None
    consumer: ConsumerSettings = Field(default_factory=ConsumerSettings)
    spark: SparkSettings = Field(default_factory=SparkSettings)
    monitor: Annotated[MonitorSettings, Own()] = Field(default_factory=MonitorSettings)
    packing: Annotated[PackingSettings, Own()] = Field(default_factory=PackingSettings)
    membership: MembershipSettings = Field(default_factory=MembershipSettings)
    bill: Annotated[BillSettings, Own()] = Field(default_factory=BillSettings)
    fleet: Annotated[str, StringConstraints(min_length=1, max_length=100), Own()] = DEFAULT_FLEET
    kubernetes: Annotated[KubernetesSettings, Own()] = Field(default_factory=KubernetesSettings)

    @field_validator("topics")
    @classmethod
    def _every_rule_can_count(cls, topics: tuple[TopicRule, ...]) -> tuple[TopicRule, ...]:
        if not topics:  # not `min_length`: pydantic says that of a list whose items are wrong, too
            raise ValueError("the list is empty; name at least one topic or pattern")
        for number, rule in enumerate(topics):
            first = next(i for i, other in enumerate(topics) if rule.topic is None or other.matches(rule.topic))
            if rule.topic is not None and first < number:
                raise ValueError(
                    f"topics[{number}] is never used, topics[{first}] fits '{rule.topic}' already: "
                    "remove one, or put the exact name first"
                )
        return topics

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.packing.classes and self.bill.price_per_consumer_hour is not None:
            raise ValueError("bill.price_per_consumer_hour: packing.classes has the prices: remove it")
        for problem in (*problems_of_sharing(self.topics), *problems_of_side_tables(self.topics)):
            raise ValueError(problem)
        for number, rule in enumerate(self.topics):
            if self.registry is None and (needed := rule.needs_registry):
                raise ValueError(f"topics[{number}].{needed}")
            if self.lake.mask_secret is None and HASH in rule.mask.values():
                raise ValueError(f"topics[{number}].mask: hash needs a secret: give lake.mask_secret")
            if rule.topic is not None and self.is_internal(rule.topic):
                raise ValueError(
                    f"topics[{number}].topic: '{rule.topic}' belongs to Kafka or kgs and is never read: remove the rule"
                )
        return self

    @property
    def formats(self) -> frozenset[str]:
        """What keys and values of its topics may be in."""
        return frozenset(name for rule in self.topics for name in (rule.format, rule.key_format))

    def is_internal(self, topic: str) -> bool:
        """Whether `topic` is Kafka's own (`__...`) or this group's (`kgs.<group>....`), which no rule ever fits."""
        return topic.startswith(("__", f"kgs.{self.group}."))

    def rule_of(self, topic: str) -> TopicRule | None:
        """The first rule that fits `topic`; None when no rule does."""
        if self.is_internal(topic):
            return None
        return next((rule for rule in self.topics if rule.matches(topic)), None)


def config_hash(settings: Settings) -> str:
    """A hash of all settings but those marked as `Own`: the same for equal settings, in whatever order they stand.

    A setting written out with its default counts as one left out, so that a new version with new settings does not
    look like another configuration. Of what is marked as `Secret` only the name counts: a new password makes no other
    configuration, and a hash in a topic must not help to guess one.
    """
    tree = settings.model_dump(mode="json", exclude_defaults=True, context=FINGERPRINT)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:_HASH_DIGITS]
