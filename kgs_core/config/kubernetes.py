"""The section of kgs.yaml about consumers in a Kubernetes cluster: what their pods are made of, and where they run."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from kgs_core.config.rule.section import Section, none_is_empty

_NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

Name = Annotated[
    str,
    StringConstraints(pattern=rf"^{_NAME}$"),
    Field(description="give a name as Kubernetes takes it: a-z 0-9 - and ."),
]
Quantity = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"),
    Field(description="give an amount as Kubernetes takes it, as text: '500m', '2', '2Gi'"),
]
Image = Annotated[
    str, StringConstraints(pattern=r"^[^\s:/][^\s]*$"), Field(description="give repository:tag or repository@digest")
]
Secret = Annotated[
    str,
    StringConstraints(pattern=rf"^{_NAME}(:/[^\s:]+)?$"),
    Field(description="give the name of a Secret, or name:/folder"),
]
_Resource = Literal["cpu", "memory", "ephemeral-storage"]
Resources = Annotated[
    dict[Literal["requests", "limits"], dict[_Resource, Quantity]],
    BeforeValidator(none_is_empty),
]
RESOURCES: Resources = {
    "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "512Mi"},
    "limits": {"memory": "2560Mi", "ephemeral-storage": "2Gi"},
}
"""What a pod has where the settings say nothing else. There is no limit of the processor."""
LabelKey = Annotated[str, StringConstraints(pattern=rf"^([a-z0-9.-]+/)?{_LABEL}$")]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_LABEL})?$")]


class KubernetesSettings(Section):
    """Consumers as pods: `resources` to `service_account` count for Dagster's runs, too, the rest for `kubernetes`."""

    image: Image | None = Field(default=None, description="give repository:tag")
    resources: Resources = Field(default_factory=dict)
    priority_class: Name | None = Field(default=None, description="give a PriorityClass, or null")
    service_account: Name | None = Field(default=None, description="give a ServiceAccount, or null")
    config_map: Name = "kgs-config"
    secrets: Annotated[tuple[Secret, ...], Field(strict=False)] = ()
    node_selector: Annotated[dict[LabelKey, LabelValue], BeforeValidator(none_is_empty)] = Field(default_factory=dict)

    @property
    def secret_variables(self) -> list[str]:
        """Secrets whose keys become environment variables."""
        return [secret for secret in self.secrets if ":" not in secret]

    @property
    def secret_folders(self) -> list[tuple[str, str]]:
        """Secrets whose keys become files, each with its folder."""
        found = (secret.partition(":") for secret in self.secrets)
        return [(name, folder) for name, _, folder in found if folder]

    def pod_resources(self, own: Resources) -> Resources:
        """Requests and limits of a pod: each amount as its class has it, else as set here, else by default."""
        return {
            kind: {**default, **self.resources.get(kind, {}), **own.get(kind, {})}
            for kind, default in RESOURCES.items()
        }
