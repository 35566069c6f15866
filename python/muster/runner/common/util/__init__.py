"""Helper functions under the names by which programs import them from horovod.runner.common.util."""
