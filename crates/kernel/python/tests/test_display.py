"""Rich output: MIME bundles, updates, and values that resist being shown."""

import unittest

from host import RunnerTest, brief, is_message, plain


class Bundles(RunnerTest):
    def test_every_display_method_is_offered(self):
        self.host.run(
            "class Rich:\n"
            "  def __repr__(self): return 'rich'\n"
            "  def _repr_html_(self): return '<b>'\n"
            "  def _repr_markdown_(self): return '**b**'\n"
            "  def _repr_svg_(self): return '<svg/>'\n"
            "  def _repr_latex_(self): return '$x$'\n"
            "  def _repr_json_(self): return {'a': [1]}, {'expanded': True}\n"
            "  def _repr_png_(self): return b'png'\n"
            "  def _repr_jpeg_(self): return b'jpeg'\n"
        )
        (event,) = [event for event in self.host.run("Rich()") if is_message(event, "result")]
        self.assertEqual(
            event["data"],
            {
                "text/plain": "rich",
                "text/html": "<b>",
                "text/markdown": "**b**",
                "image/svg+xml": "<svg/>",
                "text/latex": "$x$",
                "application/json": {"a": [1]},
                "image/png": "cG5n",  # and no second picture
            },
        )
        self.assertEqual(event["metadata"], {"application/json": {"expanded": True}})

    def test_a_jpeg_alone_is_shown(self):
        self.check(
            "class J:\n  def _repr_jpeg_(self): return b'jpeg'\n  def __repr__(self): return 'j'\nJ()",
            ("result", {"image/jpeg": "anBlZw==", "text/plain": "j"}),
        )

    def test_a_mime_bundle_may_hold_any_type(self):
        self.check(
            "class B:\n  def _repr_mimebundle_(self, include=None, exclude=None):\n"
            "    return {'application/x-cellwright-status': {'op': 'read'}, 'text/plain': 'b'}\nB()",
            ("result", {"application/x-cellwright-status": {"op": "read"}, "text/plain": "b"}),
        )

    def test_an_object_may_display_itself(self):
        self.check(
            "class S:\n  def _ipython_display_(self): display('myself'); print('printed')\nS()",
            ("display", {"text/plain": "'myself'"}),
            ("stdout", "printed\n"),
        )

    def test_failing_methods_cost_only_themselves(self):
        self.host.run(
            "class F:\n  def _repr_html_(self): 1/0\n  def _repr_markdown_(self): return 'm'\n  def __repr__(self): 1/0"
        )
        events = brief(self.host.run("F()"))
        self.assertEqual(events[0][0], "stderr")
        self.assertIn("ZeroDivisionError", events[0][1])
        self.assertEqual(events[1][1]["text/markdown"], "m")
        self.assertIn("<__main__.F object at", events[1][1]["text/plain"])

    def test_objects_that_answer_to_every_name_are_shown_plainly(self):
        self.check(
            "class Any:\n  def __getattr__(self, name): return lambda *a, **k: 'surprise'\n  def __repr__(self): return 'any'\nAny()",
            plain("any"),
        )
        self.check("import unittest.mock\nunittest.mock.Mock(name='m');")
        self.check("class Html:\n  def _repr_html_(self): return ''\nHtml", plain("__main__.Html"))

    def test_values_json_cannot_say(self):
        self.check(
            "d = {'nan': float('nan'), 'set': {1}, 'bytes': b'x', 1: 2, None: 3, 'tuple': (1, 2)}\nd['self'] = d\n"
            "display({'application/json': d}, raw=True)",
            (
                "display",
                {
                    "application/json": {
                        "nan": None,
                        "set": [1],
                        "bytes": "eA==",
                        "1": 2,
                        "null": 3,
                        "tuple": [1, 2],
                        "self": "<cycle>",
                    }
                },
            ),  # fmt: skip
        )
        self.check(
            "class Odd:\n  def __str__(self): return 'odd'\ndisplay({'application/json': [Odd(), 10 ** 30, 1e999, -0.0]}, raw=True)",
            ("display", {"application/json": ["odd", 10**30, None, -0.0]}),
        )

    def test_a_display_too_large_for_a_frame_says_so(self):
        self.configure = {"limits": {"display": 1 << 20}}
        events = brief(self.host.run("display('x' * (2 << 20))"))
        self.assertLess(len(events[0][1]["text/plain"]), 1 << 20)
        self.assertIn("too large to display", events[0][1]["text/plain"])


class Updates(RunnerTest):
    def test_a_display_can_be_updated_from_a_later_cell(self):
        host = self.host
        events = host.run("handle = display('one', display_id=True)")
        first = [event for event in events if is_message(event, "display")][0]
        events = host.run("handle.update('two'); update_display('three', display_id=handle.display_id)")
        updates = [event for event in events if is_message(event, "display")]
        self.assertEqual([event["data"]["text/plain"] for event in updates], ["'two'", "'three'"])
        self.assertEqual({event["display_id"] for event in updates}, {first["display_id"]})
        self.assertEqual([first["update"]] + [event["update"] for event in updates], [False, True, True])

    def test_a_chosen_id_is_kept(self):
        (event,) = [event for event in self.host.run("display(1, display_id='mine');") if is_message(event, "display")]
        self.assertEqual(event["display_id"], "mine")

    def test_clear_output(self):
        self.check(
            "print('a'); clear_output(wait=True); print('b')", ("stdout", "a\n"), ("clear", True), ("stdout", "b\n")
        )

    def test_displays_of_threads_belong_to_the_cell_that_runs(self):
        events = self.host.run("import threading\nt = threading.Thread(target=display, args=(1,)); t.start(); t.join()")
        self.assertEqual([event["id"] for event in events if is_message(event, "display")], [1])

    def test_metadata_and_types_can_be_chosen(self):
        self.host.run("class H:\n  def _repr_html_(self): return 'h'\n  def __repr__(self): return 'p'")
        self.check("display(H(), include=['text/html'])", ("display", {"text/html": "h"}))
        self.check("display(H(), exclude=['text/html'])", ("display", {"text/plain": "p"}))
        (event,) = [e for e in self.host.run("display(H(), metadata={'a': 1})") if is_message(e, "display")]
        self.assertEqual(event["metadata"], {"a": 1})


class Introspection(RunnerTest):
    configure = {"prelude": True}

    def test_variables_are_the_users(self):
        self.host.run(
            "import os\nname = 'x' * 1000; numbers = [1, 2]\nclass A:\n  shape = (2, 3); dtype = 'f4'\narray = A()\n_hidden = 1\n"
            "from collections import Counter, namedtuple; from enum import Enum; from dataclasses import dataclass\n"
            "from datetime import date; import array as arrays\n"
            "Point = namedtuple('Point', 'x y'); p = Point(1, (2,)); E = Enum('E', 'RED'); red = E.RED\n"
            "@dataclass\nclass D:\n  a: int = 1\n  b: str = 'x'\nd = D(); day = date(2026, 1, 2)\n"
            "class Mine(list): pass\nmine = Mine([1, 2]); counted = Counter('aab'); deep = [[[[[1]]]]]; many = {n: n for n in range(9)}"
        )
        reply = self.host.ask(type="variables", limit=2)
        self.assertEqual(reply["total"], 21)
        reply = self.host.ask(type="variables", limit=100)
        by_name = {variable.pop("name"): variable for variable in reply["variables"]}
        self.assertEqual(by_name["numbers"], {"type": "list", "size": 2, "preview": "[1, 2]"})
        self.assertEqual(by_name["array"], {"type": "A", "preview": "<A>"})
        self.assertLess(len(by_name["name"]["preview"]), 250)
        for name, preview in (
            ("p", "Point(x=1, y=(2,))"),
            ("red", "E.RED"),
            ("d", "D(a=1, b='x')"),
            ("day", "datetime.date(2026, 1, 2)"),
            ("mine", "<Mine of 2>"),
            ("counted", "<collections.Counter of 2>"),
            ("deep", "[[[[[...]]]]]"),
            ("many", "{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, ...}"),
            ("D", "<class '__main__.D'>"),
        ):
            with self.subTest(name):
                self.assertEqual(by_name[name]["preview"], preview)
        self.assertEqual(by_name["mine"]["size"], 2)
        self.assertNotIn("_hidden", by_name)
        self.assertNotIn("arrays", by_name)

    def test_a_listing_runs_none_of_the_users_code(self):
        self.host.run(
            "ran = []\n"
            "class Lazy:\n"
            "  def __getattribute__(self, name): ran.append(name); raise AttributeError(name)\n"
            "  @property\n  def shape(self): ran.append('shape')\n"
            "  @property\n  def __class__(self): ran.append('class'); return dict\n"
            "  def __len__(self): ran.append('len'); return 1\n"
            "  def __repr__(self): ran.append('repr'); return 'x'\n"
            "  def __iter__(self): ran.append('iter'); return iter(())\n"
            "class Meta(type):\n  def __repr__(cls): ran.append('meta'); return 'm'\n"
            "  def __getattribute__(cls, name): ran.append(name); return type.__getattribute__(cls, name)\n"
            "class Listed(list):\n  def __len__(self): ran.append('len'); return 3\n  def __repr__(self): ran.append('repr')\n"
            "class Made(metaclass=Meta): pass\n"
            "lazy, inside, made, listed = Lazy(), [Lazy(), {1: Lazy()}], Made(), Listed([1])\nran.clear()"
        )
        listed = {found["name"]: found["preview"] for found in self.host.ask(type="variables", limit=50)["variables"]}
        self.assertEqual(listed["inside"], "[<Lazy>, {1: <Lazy>}]")
        self.assertEqual((listed["lazy"], listed["made"], listed["listed"]), ("<Lazy>", "<Made>", "<Listed of 1>"))
        self.check("ran", plain("[]"))

    def test_variables_are_listed_after_a_cell_had_used_up_all_descriptors(self):
        # It holds them while the thread that answers starts.
        cell = self.host.start(
            "import os, resource, time\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nheld = []\n"
            "try:\n    while True: held.append(os.dup(0))\nexcept OSError: time.sleep(0.5)\n"
            "while held: os.close(held.pop())\n"
            "print('ready', flush=True)\ntime.sleep(600)"
        )
        self.host.wait_for_text("ready")
        self.assertIn("held", [v["name"] for v in self.host.ask(type="variables", limit=5)["variables"]])
        self.host.interrupt()
        self.assertEqual(self.host.finish(cell)[-1]["status"], "interrupted")

    def test_variables_are_listed_while_a_cell_runs(self):
        cell = self.host.start("before = 5\nprint('here')\nimport threading; threading.Event().wait()")
        self.host.wait_for_text("here")
        listed = self.host.ask(type="variables", limit=5)["variables"]
        self.assertEqual([found["name"] for found in listed], ["before"])
        self.host.interrupt()
        self.host.finish(cell)

    def test_a_name_of_ours_that_the_user_reuses_is_theirs(self):
        self.host.run("read = 3")
        self.assertEqual([v["name"] for v in self.host.ask(type="variables", limit=10)["variables"]], ["read"])

    def complete(self, code):
        reply = self.host.ask(type="complete", code=code, cursor=len(code))
        return code[: reply["start"]], reply["matches"]

    def test_completion(self):
        self.host.run("import os\nvalue = {'key one': 1, 'key two': 2}\ndef greet(whom, loudly=False): pass\nüber = 1")
        self.assertEqual(self.complete("print(valu"), ("print(", ["value"]))
        self.assertEqual(self.complete("os.path.isdi"), ("", ["os.path.isdir"]))
        self.assertEqual(self.complete("x = value['key o"), ("x = value['", ["key one"]))
        self.assertIn("json", self.complete("import js")[1])
        self.assertIn("getcwd", self.complete("from os import getc")[1])
        self.assertIn("whom=", self.complete("greet(wh")[1])
        self.assertEqual(self.complete("übe"), ("", ["über"]))
        self.assertIn("while", self.complete("whil")[1])
        self.assertEqual(self.complete("nothing.at.all.")[1], [])

    def test_inspection(self):
        self.host.run("def greet(whom: str):\n  'Says hello.'\n  return 1")
        reply = self.host.ask(type="inspect", code="greet('x", cursor=8, detail=0)
        self.assertEqual((reply["found"], reply["data"]["text/plain"]), (True, "greet(whom: str)\n\nSays hello."))
        reply = self.host.ask(type="inspect", code="greet", cursor=2, detail=1)
        self.assertIn("return 1", reply["data"]["text/plain"])
        self.assertEqual(self.host.ask(type="inspect", code="nothing", cursor=3, detail=0)["found"], False)

    def test_properties_that_fail_do_not_break_requests(self):
        self.host.run(
            "class P:\n  @property\n  def shape(self): raise SystemExit\n  def __len__(self): 1/0\n  def __repr__(self): 1/0\np = P()"
        )
        reply = self.host.ask(type="variables", limit=10)
        self.assertTrue("variables" in reply or "error" in reply)
        self.check("1", plain("1"))


if __name__ == "__main__":
    unittest.main()
