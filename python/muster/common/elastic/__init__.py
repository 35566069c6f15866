"""Elastic training, independent of a framework: the state of a training (`state`), the loop around it (`run`), and the
workers' side of the protocol with the job's driver (`protocol`, `places`)."""

from .notification import HostUpdateResult, NotificationManager, notification_manager
from .run import run_fn
from .state import ObjectState, State

__all__ = ["HostUpdateResult", "NotificationManager", "ObjectState", "State", "notification_manager", "run_fn"]
