"""Real notebooks that ship in an installed package: papermill's own."""

from importlib import resources
from pathlib import Path

FOLDER = Path(str(resources.files("papermill"))) / "tests" / "notebooks"

# Not here: those that sleep for a minute, need a cloud, or another language.
SHIPPED = [
    "blank-vscode",
    "broken",
    "broken1",
    "broken2",
    "complex_parameters",
    "line_magic_error",
    "nb_version_4.4",
    "no_parameters",
    "read_check",
    "report_mode_test",
    "result_no_exec",
    "simple_execute",
    "sysexit",
    "sysexit0",
    "sysexit1",
    "systemexit",
    "test_logging",
    "test_notebooknode_io",
]
