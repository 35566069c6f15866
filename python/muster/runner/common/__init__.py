"""What programs import from horovod.runner.common."""
