"""Python objects as text. Loading executes code in the text: load only texts that this job has written."""

from __future__ import annotations

import base64
from typing import Union

from ....common import objects


def dumps_base64(obj: object, to_ascii: bool = True) -> Union[str, bytes]:
    encoded = base64.b64encode(objects.dumps(obj))
    return encoded.decode("ascii") if to_ascii else encoded


def loads_base64(encoded: Union[str, bytes]) -> object:
    return objects.loads(base64.b64decode(encoded))
