"""Muster from Python: submit training jobs, watch them, read their logs.

    import muster

    with muster.Client() as client:
        job = client.submit(muster.JobSpec(name="hello", command=["echo", "hi"], folder="/tmp"))
        for record in client.logs(job.id, follow=True):
            print(record.text)
        client.wait(job)

Standard library only.
"""

from . import errors
from ._generated import *  # noqa: F401,F403  (every shape of the API)
from ._generated import __all__ as _shapes
from ._version import __version__
from ._wire import UNSET, Text
from .client import Client
from .errors import (Conflict, Exhausted, Fault, Internal, Invalid, JobFailed, MusterError, NotFound, Refused,
                     TimedOut, Unavailable)

__all__ = ["Client", "Conflict", "Exhausted", "Fault", "Internal", "Invalid", "JobFailed", "MusterError", "NotFound",
           "Refused", "Text", "TimedOut", "UNSET", "Unavailable", "__version__", "errors", *_shapes]
