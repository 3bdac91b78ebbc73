"""The lake in the format that the settings name."""

from kgs_core.config.settings import TABLE_FORMATS, LakeSettings
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.topics.factory import open_lake


class OtherLake(DeltaLake):
    """A second format, as far as the choice goes."""


def test_the_format_that_the_settings_name_is_opened(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLE_FORMATS, "other", f"{__name__}:OtherLake")
    assert type(open_lake(LakeSettings(root=str(tmp_path)))) is DeltaLake
    assert type(open_lake(LakeSettings(root=str(tmp_path), format="other"))) is OtherLake
