"""A terminal with a program in it, such as jupyter console: what is typed, and what stands on its screen."""

import codecs
import os
import re
import sys
import time

import pexpect
import pyte

PROMPT = re.compile(r"In \[(\d+)\]: ?")


class Screen(pyte.Screen):
    """A screen that also answers where its cursor is, as prompt_toolkit asks."""

    def __init__(self, columns, lines, answer):
        self.write_process_input = answer
        super().__init__(columns, lines)


class Terminal:
    """python -m ARGUMENTS in a terminal of 120 columns and so many lines that none scrolls away."""

    COLUMNS, LINES = 120, 250

    def __init__(self, *arguments, cwd, env=None):
        self.child = pexpect.spawn(
            sys.executable, ["-m", *arguments], cwd=str(cwd), dimensions=(self.LINES, self.COLUMNS),
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
        )
        self.child.delaybeforesend = None
        self.screen = Screen(self.COLUMNS, self.LINES, lambda data: self.child.send(data))
        self.stream = pyte.Stream(self.screen)
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.ended = False

    def close(self):
        self.child.close(force=True)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines).rstrip()

    @property
    def prompts(self):
        """How many prompts for code stand on the screen."""
        return sum(bool(PROMPT.match(line)) for line in self.lines)

    def until(self, condition, what, timeout=60):
        """Reads until condition() is true; what names it in the failure."""
        deadline = time.monotonic() + timeout
        while not condition():
            if self.ended or time.monotonic() > deadline:
                raise AssertionError(f"want {what}, got this screen{' and the end' * self.ended}:\n{self.text}")
            try:
                self.stream.feed(self.decode(self.child.read_nonblocking(1 << 16, timeout=0.1)))
            except pexpect.TIMEOUT:
                pass
            except pexpect.EOF:
                self.ended = True

    def shows(self, text):
        self.until(lambda: text in self.text, f"{text!r} on the screen")

    def prompt(self, count):
        """Waits until there are count prompts, and the last is empty with the cursor in it."""
        self.until(
            lambda: self.prompts >= count and PROMPT.fullmatch(self.lines[self.screen.cursor.y] + " "),
            f"{count} prompts, the last one empty")

    def type(self, text):
        """Types text, and waits for it to stand where the cursor is."""
        self.child.send(text)
        self.until(lambda: self.lines[self.screen.cursor.y].endswith(text.rstrip()), f"{text!r} at the cursor")

    def press(self, keys):
        self.child.send(keys)

    def run(self, *lines):
        """Types the lines of a cell, each with Enter, and returns what is written until the next prompt."""
        prompts = self.prompts
        self.start(*lines)
        return self.output(prompts + 1)

    def start(self, *lines):
        """Types the lines of a cell; returns once Enter is pressed after the last."""
        for i, line in enumerate(lines):
            if i > 0:
                self.until(lambda: self.lines[self.screen.cursor.y].strip().startswith("...:"), "a prompt to go on")
            self.type(line)
            self.press("\r")

    def output(self, prompts):
        """Waits for the prompt that is the prompts-th, and returns what stands between it and the one before."""
        self.prompt(prompts)
        at = [i for i, line in enumerate(self.lines) if PROMPT.match(line)]
        return "\n".join(self.lines[at[-2] + 1:at[-1]]).strip()

    def end(self):
        """Waits for the program's end and returns its exit status."""
        try:
            self.until(lambda: self.ended, "the program's end")
        except AssertionError:
            if not self.ended:
                raise
        self.child.close()
        return self.child.exitstatus
