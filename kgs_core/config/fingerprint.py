"""Fingerprint of the settings that consumers go by, short, and giving none of them away."""

import hashlib
import json
from functools import reduce
from typing import Any

from kgs_core.config.passthrough import is_secret
from kgs_core.config.settings import Settings

_DIGITS = 16
_OF_OTHERS: dict[str, Any] = {
    "monitor": True, "packing": True, "membership": True, "bill": True, "fleet": True, "kubernetes": True,
    "catalog": True, "lineage": {"token"},
}  # fmt: skip
"""What only the controller, the monitor, the fleet and the catalogue go by: to change it needs no new consumer."""
_OF_MEMBERSHIP = {"heartbeat_s", "suspect_after_s", "consumers_per_metadata_partition"}
_WITH_SECRETS = (("kafka", "client"), ("lake", "storage_options"), ("spark", "settings"), ("registry",))


def config_hash(settings: Settings) -> str:
    """A hash of all settings that a consumer goes by: the same for equal settings, in whatever order they stand.

    A setting written out with its default counts as one left out, so that a new version with new settings does not
    look like another configuration. Values whose names speak of secrets are left out: a new password makes no other
    configuration, and a hash in a topic must not help to guess one.
    """
    tree: dict[str, Any] = settings.model_dump(mode="json", exclude=_OF_OTHERS, exclude_defaults=True)
    tree["membership"] = settings.membership.model_dump(mode="json", include=_OF_MEMBERSHIP, exclude_defaults=True)
    for path in _WITH_SECRETS:
        values = reduce(lambda part, name: part.get(name) or {}, path, tree)
        values.update({key: "" for key in values if is_secret(key)})
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:_DIGITS]
