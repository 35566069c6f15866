"""Elastic training, without a framework: the state of a training (`state`), the loop around it (`run`), and the side of
the workers in what they and the job's driver say to each other (`protocol`, `places`)."""

from .notification import HostUpdateResult, NotificationManager, notification_manager
from .run import run_fn
from .state import ObjectState, State

__all__ = ["HostUpdateResult", "NotificationManager", "ObjectState", "State", "notification_manager", "run_fn"]
