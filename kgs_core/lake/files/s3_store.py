"""S3 by obstore, the Rust library that deltalake has inside: conditional put, and listings from a name on."""

from datetime import timedelta
from typing import Any

from kgs_core.lake.files.storage import Storage

_TIMEOUT_S = 30.0
_NOT_OF_THE_STORE = {"aws_allow_http", "aws_s3_allow_unsafe_rename", "aws_s3_locking_provider"}


def s3_store(storage: Storage, folder: str) -> Any:
    """The store of one folder under the lake's root; names are relative to it."""
    from obstore.store import S3Store

    options = storage.delta_options()
    http = options.get("aws_allow_http", options.get("allow_http", "false")).lower() == "true"
    connect: Any = S3Store.from_url  # its types know the names of the options, which are the user's here
    return connect(
        storage.uri(folder),
        config={k: v for k, v in options.items() if k.startswith("aws_") and k not in _NOT_OF_THE_STORE},
        client_options={"allow_http": http, "timeout": timedelta(seconds=_TIMEOUT_S)},
        retry_config={"max_retries": int(options["max_retries"])} if "max_retries" in options else None,
    )
