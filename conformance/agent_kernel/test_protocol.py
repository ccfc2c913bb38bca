"""Jupyter's own checks of a kernel's messages."""

import os
import shlex
import subprocess
import tempfile
import unittest

import jupyter_kernel_test
from jupyter_client.kernelspec import KernelSpecManager
from kernels import CELLWRIGHT, FAULT_AGENT, FAULTS, execute, running


class Messages(jupyter_kernel_test.KernelTests):
    kernel_name = FAULTS
    language_name = "agent"
    file_extension = ".txt"
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
        {"text": "%agent permissions ", "matches": {"ask", "auto", "deny", "list", "allow", "clear", "test"}},
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


class Installed(unittest.TestCase):
    """What `cellwright kernel install` writes is what Jupyter starts."""

    def test_the_installed_kernel_answers_in_the_language_it_was_announced_with(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(
                [CELLWRIGHT, "kernel", "install", "--prefix", prefix], check=True, capture_output=True
            )
            specs = KernelSpecManager(kernel_dirs=[f"{prefix}/share/jupyter/kernels"])
            variables = {"ACP_AGENT_COMMAND": FAULT_AGENT[0], "ACP_AGENT_ARGS": shlex.join(FAULT_AGENT[1:])}
            with running("cellwright-agent", specs=specs, env=os.environ | variables) as (manager, client):
                info = client.kernel_info(reply=True)["content"]["language_info"]
                self.assertEqual(manager.kernel_spec.language, info["name"])
                self.assertEqual(manager.kernel_spec.interrupt_mode, "message")
                self.assertIn("hello", execute(client, "say hello").text)


del jupyter_kernel_test.KernelTests, jupyter_kernel_test.IopubWelcomeTests
