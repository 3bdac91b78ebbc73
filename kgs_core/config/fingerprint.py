"""Fingerprint of the settings that all consumers must agree in, short, and giving none of them away."""

import hashlib
import json

from kgs_core.config.rule.section import FINGERPRINT
from kgs_core.config.settings import Settings

_DIGITS = 16


def config_hash(settings: Settings) -> str:
    """A hash of all settings but those marked as `Own`: the same for equal settings, in whatever order they stand.

    A setting written out with its default counts as one left out, so that a new version with new settings does not
    look like another configuration. Of what is marked as `Secret` only the name counts: a new password makes no other
    configuration, and a hash in a topic must not help to guess one.
    """
    tree = settings.model_dump(mode="json", exclude_defaults=True, context=FINGERPRINT)
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:_DIGITS]
