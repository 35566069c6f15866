"""Modules that programs import from horovod.runner.common."""
