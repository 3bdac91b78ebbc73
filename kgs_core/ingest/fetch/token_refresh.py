"""Tokens handed to librdkafka's native client, from a thread of librdkafka's own."""

import ctypes as c
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kgs_core.errors import PortError
from kgs_core.kafka.tokens import TokenSource

_POINTER, _TEXT, _INT, _SIZE = c.c_void_p, c.c_char_p, c.c_int, c.c_size_t
_REFRESH = c.CFUNCTYPE(None, _POINTER, _TEXT, _POINTER)
_ERROR_SIZE = 512
SIGNATURES: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "rd_kafka_conf_set_oauthbearer_token_refresh_cb": (None, [_POINTER, _REFRESH]),
    "rd_kafka_conf_enable_sasl_queue": (None, [_POINTER, _INT]),
    "rd_kafka_sasl_background_callbacks_enable": (_POINTER, [_POINTER]),
    "rd_kafka_oauthbearer_set_token": (
        _INT,
        [_POINTER, _TEXT, c.c_int64, _TEXT, c.POINTER(_TEXT), _SIZE, _TEXT, _SIZE],
    ),
    "rd_kafka_oauthbearer_set_token_failure": (_INT, [_POINTER, _TEXT]),
}
"""librdkafka's functions -> type of their result, types of their arguments."""


def prepare(lib: Any, conf: int, source: TokenSource) -> object:
    """What the client is to call for tokens, noted in its configuration; to be kept for as long as the client."""
    refresh = _REFRESH(partial(_give_token, lib, source))
    lib.rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, refresh)
    lib.rd_kafka_conf_enable_sasl_queue(conf, 1)
    return refresh


def begin(lib: Any, handle: int) -> None:
    """Have the client call from a thread of its own, whether it is polled or not."""
    error = lib.rd_kafka_sasl_background_callbacks_enable(handle)
    if error:  # it is then called from `consume`
        lib.rd_kafka_error_destroy(error)


def _give_token(lib: Any, source: TokenSource, handle: int, _config: bytes, _opaque: int) -> None:
    """Hand a token to the client, or why there is none; the client asks again in ten seconds, or when it is used up."""
    try:
        token = source.token()
    except PortError as e:
        lib.rd_kafka_oauthbearer_set_token_failure(handle, str(e).encode(errors="replace"))
        return
    error = c.create_string_buffer(_ERROR_SIZE)
    pairs = [text.encode() for pair in token.extensions.items() for text in pair]
    code = lib.rd_kafka_oauthbearer_set_token(
        handle,
        token.value.encode(),
        int(token.expires_s * 1000),
        token.principal.encode(),
        (_TEXT * len(pairs))(*pairs),
        len(pairs),
        error,
        _ERROR_SIZE,
    )
    if code:  # what it says quotes no token
        lib.rd_kafka_oauthbearer_set_token_failure(handle, error.value)
