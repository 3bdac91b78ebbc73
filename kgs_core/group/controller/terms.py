"""Terms of joining a group: a Target states them, and a joining consumer compares them."""

from kgs_core.config import Settings
from kgs_core.config.settings import config_hash
from kgs_core.group.protocol import Terms

OWN_PARTITIONS = 1
"""`consumers_per_metadata_partition` if each consumer has its own partition; members of version 0.1 compare it."""


def terms_of(settings: Settings) -> Terms:
    """Terms of joining that a controller with these settings states."""
    membership = settings.membership
    return Terms(settings.lake.root, membership.suspect_after_s, (config_hash(settings),), OWN_PARTITIONS)


def other_terms(settings: Settings, theirs: Terms) -> list[str]:
    """Differences between a configuration and the group's, with the way out; the hash if no other is found."""
    ours = terms_of(settings)
    (own_hash,) = ours.config_hashes
    different = []
    if theirs.lake_root != ours.lake_root:
        different.append(f"lake.root {theirs.lake_root}, this configuration says {ours.lake_root}")
    if theirs.suspect_after_s != ours.suspect_after_s:
        limit = f"membership.suspect_after_s {theirs.suspect_after_s:g}"
        different.append(f"{limit}, this configuration says {ours.suspect_after_s:g}")
    fixed = []
    if (theirs_k := theirs.consumers_per_metadata_partition) not in (None, OWN_PARTITIONS):
        fixed.append(
            f"a controller of version 0.1 with consumers_per_metadata_partition {theirs_k}, so it would not find its "
            "Assignments: `kgs stop` the group, wait until all consumers are gone, and start again with this version"
        )
    way_out = "start it with the group's configuration, or "
    if different:
        way_out += "restart `kgs control` with this one, then `kgs replace`"
    elif not fixed and theirs.config_hashes and own_hash not in theirs.config_hashes:
        known = ", ".join(each[:8] for each in theirs.config_hashes)
        different.append(f"configuration {known}, this is {own_hash[:8]}")
        way_out += "bring this one in with `kgs replace`"
    return [*fixed, *(f"{what}: {way_out}" for what in different)]
