"""Keys, and the digests by which the holder of a key authenticates a message."""

from __future__ import annotations

import hashlib
import hmac
import secrets

SECRET_LENGTH = 32  # bytes
DIGEST_LENGTH = hashlib.sha256().digest_size
HOROVOD_SECRET_KEY = "_HOROVOD_SECRET_KEY"


def make_secret_key() -> bytes:
    return secrets.token_bytes(SECRET_LENGTH)


def compute_digest(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def check_digest(key: bytes, message: bytes, digest: bytes) -> bool:
    return hmac.compare_digest(compute_digest(key, message), digest)
