"""Addresses of lakes: those of each store, in its own words, and nothing that is none."""

import pytest

from kgs_core.config.lake_root import check_root, split_root


@pytest.mark.parametrize(
    ("root", "parts", "kind"),
    [
        ("/data/lake", ("", "", "/data/lake"), ""),
        ("s3://my.bucket-1/a/b", ("s3", "my.bucket-1", "a/b"), "s3"),
        ("gs://my_bucket", ("gs", "my_bucket", ""), "gcs"),
        ("az://container/a b", ("az", "container", "a b"), "azure"),
        (
            "abfss://files@account.dfs.core.windows.net/x",
            ("abfss", "files@account.dfs.core.windows.net", "x"),
            "azure",
        ),
    ],
)
def test_parts_of_an_address(root: str, parts: tuple[str, str, str], kind: str) -> None:
    assert check_root(f"{root}/") == root
    assert split_root(root) == parts
    assert split_root(root).kind == kind


@pytest.mark.parametrize(
    ("root", "problem"),
    [
        ("hdfs://name/x", "this scheme is not supported; write a plain path, s3://"),
        ("abfss://container/x", "abfss://container@account"),
        ("abfss://files@/x", "abfss://container@account"),
        ("az://account.blob.core.windows.net/x", "az://container/prefix"),
        ("gs://key:secret@bucket/x", "belong in storage_options"),
        ("az://c/x?sv=2024&sig=abc", "belong in storage_options"),
        ("gs://bucket/a/../b", "'..' is not allowed"),
        ("s3://bucket/a%41", "'%' and '//' are not allowed"),
        ("gs://bucket/a//b", "'%' and '//' are not allowed"),
        ("az:///x", "az://container/prefix"),
        ("", "write the path in full"),
    ],
)
def test_what_is_no_address_of_a_lake(root: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_root(root)
