"""Detects that Horovod itself is installed in the same folder as this package, so that their files are mixed."""

import os
import re


def check(package):
    """Raises ImportError if the metadata of Horovod's own distribution is beside the folder `package`.

    Our distribution is called muster_horovod-*. A Horovod in another folder of sys.path does no harm, since Python uses
    the first one.
    """
    beside = os.path.dirname(os.path.abspath(package))
    try:
        names = os.listdir(beside)
    except OSError:  # the package is in a zip file
        return
    for name in sorted(names):
        found = re.match(r"horovod-([^-]+)(-.*)?\.(dist-info|egg-info|egg)$", name, re.IGNORECASE)
        if found:
            version = found[1]
            raise ImportError(
                f"Horovod {version} and muster-horovod are both installed in {beside}, and both provide the package "
                "'horovod', so that its files are mixed. To run on Muster: pip uninstall -y horovod muster-horovod && "
                "pip install muster-horovod. To keep Horovod: pip uninstall -y muster-horovod && pip install "
                "--force-reinstall --no-deps horovod", name="horovod")
