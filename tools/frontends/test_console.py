"""jupyter console, driven through a pseudo-terminal as a person would."""

import os
import re
import sys
import time

import pexpect

from session import KERNEL, FrontEndTest


class Console(FrontEndTest):
    def setUp(self):
        self.console = pexpect.spawn(
            sys.executable,
            ["-m", "jupyter", "console", "--kernel", KERNEL, "--simple-prompt"],
            cwd=str(self.dir), encoding="utf-8", timeout=60, dimensions=(40, 120),
            env={**os.environ, "TERM": "dumb", "NO_COLOR": "1"},
        )
        self.addCleanup(self.console.close, True)
        self.prompt()

    def prompt(self):
        self.console.expect(r"In \[\d+\]: ")

    def run_cell(self, code):
        self.console.sendline(code)
        self.prompt()
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.console.before)

    def test_conversation(self):
        self.run_cell("x := 20")
        self.assertRegex(self.run_cell("x + 22"), r"Out\[\d+\]: ?\s*42")
        self.assertIn("hello", self.run_cell('fmt.Println("hello")'))
        self.assertIn("undefinedName", self.run_cell("undefinedName"))
        self.assertIn("Paris", self.run_cell('Generate("The capital of France is", Params{MaxTokens: 8});'))

    def test_interrupt(self):
        self.console.sendline("for { time.Sleep(time.Millisecond) }")
        self.console.expect("Sleep")
        time.sleep(1)
        self.console.sendintr()
        self.prompt()
        self.assertRegex(self.run_cell("6 * 7"), "42")

    def test_leaving_ends_the_kernel(self):
        self.console.sendeof()
        if self.console.expect([r"\(y/\[?n\]?\)|\[y\]/n|\?", pexpect.EOF]) == 0:
            self.console.sendline("y")
            self.console.expect(pexpect.EOF)
        self.console.wait()
