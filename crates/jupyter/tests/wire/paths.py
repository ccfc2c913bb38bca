"""Where jupyter_core looks for kernels with the environment it was started in."""

import json
import sys

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import jupyter_runtime_dir

print(
    json.dumps(
        {
            "kernels": KernelSpecManager().kernel_dirs,
            "runtime": jupyter_runtime_dir(),
            "prefix": sys.prefix,
        }
    )
)
