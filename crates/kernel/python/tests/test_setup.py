"""`configure` and the prelude."""

import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

from host import BARE, FOLDER, NONCE, RunnerTest, brief, is_message, plain


class Folder(RunnerTest):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path


class Configure(Folder):
    env = {"CW_OLD": "1"}

    def test_a_script_is_known_to_its_cells(self):
        self.configure = {"file": "/some/script.py"}
        self.check("import sys\n__file__, sys.argv", plain("('/some/script.py', ['/some/script.py'])"))

    def test_a_module_that_does_not_end_is_named_before_and_after_it_is_interrupted(self):
        path = self.file("endless.py", "while True: print('here', flush=True)")
        host = self.launch()
        host.send(type="hello", protocol=1, nonce=NONCE)
        host.send(type="configure", modules=[{"name": "endless", "path": path}])
        self.assertEqual(host.wait_for(lambda event: is_message(event, "loading"))["module"], "endless")
        host.wait_for_text("here")
        host.interrupt()
        warnings = host.wait_for(lambda event: is_message(event, "configured"))["warnings"]
        self.assertEqual(warnings, ["module `endless` was not loaded: KeyboardInterrupt (%s, line 1)" % path])

    def test_folder_environment_and_path(self):
        self.file("lib/cw_lib.py", "x = 1")
        self.configure = {
            "cwd": self.folder,
            "env": {"CW_NEW": "ü", "CW_OLD": None},
            "path": [os.path.join(self.folder, "lib")],
        }
        self.check(
            "import os, sys, cw_lib\nos.getcwd() == %r, os.environ['CW_NEW'], 'CW_OLD' in os.environ, sys.path[:2]"
            % self.folder,
            plain("(True, 'ü', False, [%r, ''])" % os.path.join(self.folder, "lib")),
        )

    def test_a_folder_that_is_not_there_is_a_warning(self):
        self.configure = {"cwd": os.path.join(self.folder, "gone")}
        self.check("1", plain("1"))
        self.assertIn("the working folder is still", self.configured["warnings"][0])

    def test_modules_run_in_the_namespace_and_failing_ones_are_named(self):
        good = self.file("good.py", "import os\ndef helper(): return 'helped'\nhere = __file__")
        bad = self.file("bad.py", "x = 1\n\nundefined_name\n")
        wrong = self.file("wrong.py", "x = (\n")
        leaving = self.file("leaving.py", "import sys\nsys.exit(2)")
        gone = os.path.join(self.folder, "gone.py")
        paths = {"good": good, "bad": bad, "wrong": wrong, "leaving": leaving, "gone": gone}
        self.configure = {"modules": [{"name": name, "path": path} for name, path in paths.items()]}
        self.check("helper(), here == %r, '__file__' in globals()" % good, plain("('helped', True, False)"))
        warnings = self.configured["warnings"]
        self.assertEqual(len(warnings), 4)
        self.assertEqual(
            warnings[0],
            "module `bad` was not loaded: NameError: name 'undefined_name' is not defined (%s, line 3)" % bad,
        )
        self.assertIn("module `wrong` was not loaded: SyntaxError", warnings[1])
        self.assertIn("%s, line " % wrong, warnings[1])
        self.assertIn("module `leaving` was not loaded: SystemExit: 2 (%s, line 2)" % leaving, warnings[2])
        self.assertIn("module `gone` was not loaded", warnings[3])
        self.assertEqual(self.host.ask(type="variables", limit=10)["total"], 0)

    def test_a_prelude_of_ones_own_leaks_no_names(self):
        self.configure = {
            "prelude": "import os as _os\n__all__ = ['shout']\nlocal = 1\ndef shout(): return _os.name.upper()"
        }
        self.check("shout()", plain(repr(os.name.upper())))
        self.check("[name for name in ('_os', 'local', '__all__') if name in globals()]", plain("[]"))

    def test_limits(self):
        self.configure = {"limits": {"outputs": 2}}
        for code in "123":
            self.host.run(code)
        self.check("sorted(Out)", plain("[2, 3]"))


class CellEnvironment(RunnerTest):
    env = {"CW_OLD": "1"}

    def test_variables_given_with_a_call_reach_its_cells_and_no_others(self):
        look = "import os\n[os.environ.get(name) for name in ('CW_OLD', 'CW_NEW')]"
        self.check(look, plain("['2', 'x']"), env={"CW_OLD": "2", "CW_NEW": "x"})
        self.check("!echo $CW_OLD $CW_NEW", ("stdout", "2 x\n"), env={"CW_OLD": "2", "CW_NEW": "x"})
        self.check(look, plain("['1', None]"))
        self.host.run("1/0", env={"CW_OLD": "2"})
        self.check(look, plain("['1', None]"))

    def test_a_variable_that_the_cell_sets_itself_stays(self):
        self.host.run(
            "import os; os.environ['CW_OLD'] = 'mine'; del os.environ['CW_NEW']", env={"CW_OLD": "2", "CW_NEW": "x"}
        )
        self.check("os.environ['CW_OLD'], 'CW_NEW' in os.environ", plain("('mine', False)"))


class Shadows(Folder):
    """Files of the user named like standard modules, which we and libraries load late."""

    NAMES = ("token", "textwrap", "linecache", "traceback", "select", "ast", "re", "inspect", "subprocess", "json")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.file(name + ".py", "raise SystemError('not the module you look for')")
        self.configure = {"cwd": self.folder, "path": [self.folder], "prelude": True}

    def test_errors_are_reported_in_a_folder_with_a_file_named_traceback(self):
        events = self.host.run("def f():\n    return 1 / 0\nf()")
        self.assertIn("    return 1 / 0", events[-2]["traceback"])
        self.assertEqual(events[-2]["evalue"], "division by zero")

    def test_libraries_magics_and_questions_find_the_standard_modules(self):
        self.check("import asyncio, unittest, logging\nawait asyncio.sleep(0, 5)", plain("5"))
        self.check("!echo hi", ("stdout", "hi\n"))
        self.check("bash('echo hi').exit_code", ("stdout", "hi\n"), plain("0"))
        self.assertTrue(self.host.ask(type="inspect", code="len", cursor=1, detail=0)["found"])
        self.assertEqual(self.host.ask(type="variables", limit=1)["total"], 0)

    def test_the_users_own_import_gets_the_users_file(self):
        self.file("textwrap.py", "mine = True")
        self.check("import textwrap; textwrap.mine", plain("True"))
        self.check("1/0", ("error", "ZeroDivisionError", "division by zero"))


class Surroundings(Folder):
    def test_a_deleted_folder_does_not_stop_code(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        self.configure = {"cwd": gone, "path": [gone], "prelude": True}
        self.env = {"PYTHONPATH": BARE}
        self.check("1", plain("1"))
        os.rmdir(gone)
        self.check("import json, asyncio; 1/0", ("error", "ZeroDivisionError", "division by zero"))
        self.check("%cd -q " + self.folder + "\n%pwd", plain(repr(self.folder)))

    def test_an_error_in_a_cell_that_used_up_all_descriptors_is_told_whole(self):
        events = self.host.run(
            "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nheld = []\n"
            "try:\n    while True: held.append(os.dup(0))\nexcept OSError: 1 / 0"
        )
        self.assertEqual(events[-2]["evalue"], "division by zero")
        self.assertEqual(events[-2]["line"], 6)
        self.assertIn("except OSError: 1 / 0", "\n".join(events[-2]["traceback"]))

    def test_startup_files_of_ipython_are_run_where_it_is_installed(self):
        self.file("profile_default/startup/10-mine.py", "from_startup = 5")
        self.env = {"IPYTHONDIR": self.folder, "PYTHONPATH": BARE}
        self.check("'from_startup' in globals()", plain("False"))


class Prelude(Folder):
    configure = {"prelude": True}

    def test_env(self):
        self.check("env('CW_X'), env('CW_X', 5), env('CW_X'), env()['CW_X']", plain("(None, '5', '5', '5')"))

    def test_read_and_write(self):
        path = os.path.join(self.folder, "deep", "file.txt")
        self.check("write(%r, 'a\\r\\nb\\nc\\n')" % path, plain(repr(path)))
        self.check(
            "read(%r), read(%r, 2, 1), read(%r, offset=3)" % (path, path, path),
            plain("('a\\r\\nb\\nc\\n', 'b\\n', 'c\\n')"),
        )
        self.check("write(%r, b'\\xff'); read(%r)" % (path, path), plain("'\ufffd'"))

    def test_bash(self):
        self.check("r = bash('echo out; echo err >&2; exit 3')\nr.text, r.exit_code, bool(r), str(r)",
                   ("stdout", "out\nerr\n"), plain("('out\\nerr\\n', 3, False, 'out\\nerr\\n')"))  # fmt: skip
        self.check("bash('pwd', cwd=%r)" % self.folder, ("stdout", self.folder + "\n"),
                   plain("<bash: exit code 0, %d characters>" % (len(self.folder) + 1)))  # fmt: skip
        self.check("bash('cat').exit_code", plain("0"))
        self.check("bash(\"printf '\\\\xff\\\\xc3'\").text", ("stdout", "\ufffd\ufffd"), plain("'\ufffd\ufffd'"))

    def test_bash_output_is_seen_while_it_runs(self):
        host = self.host
        cell = host.start("bash('echo early; sleep 600')")
        host.wait_for_text("early\n")
        host.interrupt()
        self.assertEqual(host.finish(cell)[-1]["status"], "interrupted")

    def test_bash_that_takes_too_long_is_ended_with_its_children(self):
        events = brief(self.host.run("bash('echo $$; sleep 613 & sleep 614; true', timeout=0.3)"))
        self.assertEqual(events[-1][:2], ("error", "TimeoutError"))
        self.assertIn("0.3 seconds", events[-1][2])
        running = subprocess.run(["ps", "-A", "-o", "args="], stdout=subprocess.PIPE).stdout.decode()
        self.assertNotIn("sleep 613", running)
        self.assertNotIn("sleep 614", running)

    def test_bash_uses_the_snapshot(self):
        snapshot = self.file("snapshot.sh", "greet() { echo hello $1; }\nalias_dir=/tmp\n")
        self.env = {"CELLWRIGHT_SHELL_SNAPSHOT": snapshot}
        self.check(
            'bash(\'greet "$USER_NAME you" && echo "$alias_dir"\').exit_code',
            ("stdout", "hello you\n/tmp\n"),
            plain("0"),
        )

    def test_bash_makes_a_snapshot_of_the_login_files_once(self):
        self.file(".bash_profile", "echo login >>%s/logins; export CW_LOGIN=yes; cw() { echo function; }" % self.folder)
        self.env = {"HOME": self.folder, "CELLWRIGHT_SHELL_SNAPSHOT": "", "PI_SHELL_SNAPSHOT": ""}
        for _ in range(3):
            self.check("bash('echo $CW_LOGIN; cw').exit_code", ("stdout", "yes\nfunction\n"), plain("0"))
        with open(os.path.join(self.folder, "logins")) as file:
            self.assertEqual(file.read(), "login\n")
        snapshot = self.value("import os; os.environ['PI_SHELL_SNAPSHOT']").strip("'")
        self.host.send(type="shutdown")
        self.host.process.wait(60)
        self.assertFalse(os.path.exists(snapshot))

    def test_bash_sees_variables_as_the_cells_have_them(self):
        """The snapshot is older than what cells did since it was made."""
        self.file(".bash_profile", "export CW_LOGIN=login CW_BOTH=login PATH=/cw/login:/usr/bin:/bin")
        self.env = {"HOME": self.folder, "CW_GONE": "old", "CW_BOTH": "old", "CELLWRIGHT_SHELL_SNAPSHOT": ""}
        show = "bash('echo $CW_LOGIN ${CW_GONE-unset} $CW_BOTH')"
        self.check(show + ".exit_code", ("stdout", "login old old\n"), plain("0"))
        self.check("import os; os.environ['CW_BOTH'] = 'new'; del os.environ['CW_GONE']")
        self.check(show + ".exit_code", ("stdout", "login unset new\n"), plain("0"))
        self.check("os.environ['PATH'] = '/cw/python:' + os.environ['PATH']")
        path = str(brief(self.host.run("bash('echo $PATH')"))[0][1]).strip().split(":")
        self.assertEqual(path[0], "/cw/python")
        self.assertEqual(path[-1], "/cw/login")

    def test_login_files_that_hang_are_left_out_with_a_word(self):
        self.file(".bash_profile", "while :; do sleep 60; done")
        self.env = {"HOME": self.folder, "CELLWRIGHT_SHELL_SNAPSHOT": "", "PI_SHELL_SNAPSHOT": ""}
        self.check("import sys; sys.modules[bash.__module__]._LOGIN = 0.2")
        said = "bash(): your login files took longer than 0 s and were left out\n"
        self.check("bash('echo on').exit_code", ("stderr", said), ("stdout", "on\n"), plain("0"))
        self.check("bash('echo on').exit_code", ("stdout", "on\n"), plain("0"))

    def test_messages_of_the_shell_name_the_commands_own_line(self):
        self.check(
            "bash('\\nno_such_cw').exit_code", ("stdout", "bash: line 2: no_such_cw: command not found\n"), plain("127")
        )

    def test_output_reads_artifacts_whole(self):
        self.file("artifacts/7.log", "x" * 100000)
        self.env = {"PI_ARTIFACTS_DIR": os.path.join(self.folder, "artifacts")}
        self.check(
            "len(output(7)), len(output('artifact://7')), len(output('7.log'))", plain("(100000, 100000, 100000)")
        )
        self.assertEqual(brief(self.host.run("output(8)"))[0][1], "FileNotFoundError")

    def test_without_a_session_the_helpers_say_what_is_missing(self):
        self.env = {name: "" for name in os.environ if name.startswith(("CELLWRIGHT_", "PI_"))}
        self.assertIn("CELLWRIGHT_ARTIFACTS_DIR", brief(self.host.run("output(1)"))[0][2])
        self.assertIn("CELLWRIGHT_TOOL_BRIDGE_URL", brief(self.host.run("tool.read(path='x')"))[0][2])

    def test_the_prelude_runs_in_any_kernel(self):
        with open(os.path.join(FOLDER, "cellwright_runner", "prelude.py"), encoding="utf-8") as file:
            names = {"__name__": "elsewhere"}
            exec(file.read(), names)
        self.assertEqual(names["env"]("PATH"), os.environ["PATH"])


class Bridge(RunnerTest):
    configure = {"prelude": True}

    def setUp(self):
        self.requests = requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append((self.path, self.headers["Authorization"], body))
                status, answer = {
                    "big": (200, {"ok": True, "value": "x" * 1_000_000}),
                    "typed": (200, {"ok": True, "value": {"n": 1, "list": [None, 1.5]}}),
                    "fails": (200, {"ok": False, "error": "no such file"}),
                    "forbidden": (403, {"ok": False, "error": "not allowed"}),
                }.get(body["name"], (404, None))
                data = json.dumps(answer).encode() if answer else b"not found"
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        # A proxy that would swallow the call.
        proxy = "http://127.0.0.1:9"
        self.env = {
            "PI_TOOL_BRIDGE_URL": "http://127.0.0.1:1",
            "CELLWRIGHT_TOOL_BRIDGE_URL": "http://127.0.0.1:%d/" % server.server_port,
            "CELLWRIGHT_TOOL_BRIDGE_TOKEN": "secret",
            "PI_TOOL_BRIDGE_SESSION": "s1",
            "http_proxy": proxy,
            "HTTP_PROXY": proxy,
            "all_proxy": proxy,
            "no_proxy": "",
        }

    def test_results_are_typed_and_whole(self):
        self.check("tool.typed(path='a', lines=[1])", plain("{'n': 1, 'list': [None, 1.5]}"))
        self.assertEqual(
            self.requests,
            [("/v1/tool", "Bearer secret", {"session": "s1", "name": "typed", "args": {"path": "a", "lines": [1]}})],
        )
        self.check("len(tool.big())", plain("1000000"))
        self.check("tool('typed')['n']", plain("1"))

    def test_failures_are_told(self):
        for name, message in (
            ("fails", "tool.fails(): no such file"),
            ("forbidden", "tool.forbidden(): not allowed"),
            ("gone", "tool.gone(): the bridge answered 404 Not Found"),
        ):
            with self.subTest(name):
                self.check("tool.%s()" % name, ("error", "ToolError", message))

    def test_the_object_is_shown_plainly(self):
        self.check("tool", plain("<tools of this session: tool.<name>(**arguments)>"))


if __name__ == "__main__":
    unittest.main()
