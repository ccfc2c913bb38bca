"""Jupyter's own checks of a kernel's messages."""

import jupyter_kernel_test
from kernels import FAULTS


class Messages(jupyter_kernel_test.KernelTests):
    kernel_name = FAULTS
    language_name = "agent"
    file_extension = ".md"
    code_hello_world = "say hello, world"
    code_stderr = "think about it"
    code_page_something = "%agent?"
    code_generate_error = "fail no model today"
    code_execute_result = (
        {"code": "%agent render", "result": "auto"},
        {"code": "%permissions auto", "result": "auto"},
        {"code": "%permissions", "result": "auto"},
    )
    code_display_data = (
        {"code": "%agent render rich\nimage", "mime": "image/png"},
        {"code": "tool /tmp/x", "mime": "text/html"},
        {"code": "%agent render auto\n%agent render\nsay x", "mime": "text/plain"},
    )
    completion_samples = (
        {"text": "%agent permissions ", "matches": {"ask", "auto", "deny", "list", "allow", "clear"}},
        {"text": "%agent session u", "matches": {"use"}},
        {"text": "/w", "matches": {"/web"}},
    )
    complete_code_samples = ("hello", "what is this?", "", "%agent session list", "%%agent main\nhello")
    incomplete_code_samples = ("hello \\", "%%agent main")
    invalid_code_samples = ("%agent nonsense", "%nonsense")
    code_history_pattern = "%permissions a*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "%agent session"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kc.execute_interactive("%agent commands", timeout=60)  # which the agent tells when it has started


class Welcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = FAULTS
    support_iopub_welcome = True


del jupyter_kernel_test.KernelTests, jupyter_kernel_test.IopubWelcomeTests
