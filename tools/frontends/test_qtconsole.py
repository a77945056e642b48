"""qtconsole's own widget, on Qt's offscreen platform, with its keys pressed."""

import os
import sys
import time

from session import KERNEL, LONG, FrontEndTest, running

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_API"] = "pyside6"

from qtconsole.manager import QtKernelManager
from qtconsole.rich_jupyter_widget import RichJupyterWidget
from qtpy.QtCore import Qt, qInstallMessageHandler
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication


class Qtconsole(FrontEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        runtime = cls.dir / "xdg"
        runtime.mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        qInstallMessageHandler(lambda kind, context, text: None if "This plugin does not support" in text else print(text))
        cls.app = QApplication.instance() or QApplication(sys.argv[:1])

    def setUp(self):
        self.manager = QtKernelManager(kernel_name=KERNEL)
        self.manager.start_kernel()
        self.addCleanup(self.manager.shutdown_kernel)
        self.client = self.manager.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.widget = RichJupyterWidget()
        self.widget.confirm_restart = False
        self.left = []
        self.widget.exit_requested.connect(self.left.append)
        self.widget.kernel_manager = self.manager
        self.widget.kernel_client = self.client  # asks for kernel_info and the history without waiting between them
        self.widget.resize(1000, 700)
        self.widget.show()
        self.addCleanup(self.widget.deleteLater)
        self.prompt(1)

    @property
    def text(self):
        return self.widget._control.toPlainText()

    def until(self, condition, what, timeout=60):
        """Lets Qt handle its events until condition() is true."""
        deadline = time.monotonic() + timeout
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"want {what}, got\n{self.text}")
            self.app.processEvents()
            time.sleep(0.005)

    def prompt(self, n):
        self.until(lambda: self.text.rstrip().endswith(f"In [{n}]:") and not self.widget._executing, f"prompt {n}")

    def type(self, text):
        """Presses the keys of a text, one at a time."""
        QTest.keyClicks(self.widget._control, text)

    def press(self, key, modifier=Qt.NoModifier):
        QTest.keyClick(self.widget._control, key, modifier)

    @property
    def number(self):
        return self.widget._previous_prompt_obj.number

    def run_cell(self, code):
        """Types a cell of one line and returns what is written until the next prompt."""
        number = self.number
        self.type(code)
        before = len(self.text)
        self.press(Qt.Key_Return)
        self.prompt(number + 1)
        return self.text[before:].rsplit("In [", 1)[0].strip()

    def evaluate(self, expression):
        """What a silent user expression gives, as qtconsole asks for them."""
        got = []
        self.widget._silent_exec_callback(expression, got.append)
        self.until(lambda: got, f"the value of {expression}")
        return got[0]

    def test_conversation(self):
        self.assertIn("deltafin", self.text, "the banner")
        self.assertEqual(self.widget.language_name, "go")
        self.assertEqual(self.widget._highlighter._lexer.name, "Go")
        self.assertEqual(self.run_cell("x := 20"), "")
        self.assertEqual(self.run_cell("x + 22"), "Out[2]: 42")
        self.assertEqual(self.run_cell('fmt.Println("hello")'), "hello")
        error = self.run_cell("undefinedName + 1")
        self.assertIn("→   1 | undefinedName + 1", error)
        self.assertNotIn("\x1b", error)
        self.assertIn("Paris", self.run_cell('Generate("The capital of France is", Params{MaxTokens: 8});'))
        self.assertEqual(self.evaluate("x * 2")["data"]["text/plain"], "40")
        self.assertEqual(self.evaluate("undefinedName")["status"], "error")
        self.assertEqual(self.number, 6, "silent requests don't count")

        with self.subTest("a function over several lines"):
            self.type("func twice(n int) int {")
            self.press(Qt.Key_Return)
            self.until(lambda: self.widget.input_buffer == "func twice(n int) int {\n    ", "a line to go on with, indented")
            self.type("return 2 * n")
            self.press(Qt.Key_Return)
            self.until(lambda: self.widget.input_buffer.count("\n") == 2, "a third line")
            self.press(Qt.Key_Backspace)
            self.type("}")
            self.press(Qt.Key_Return)
            self.prompt(7)
            self.assertIn("42", self.run_cell("twice(x + 1)"))

    def test_completion_and_call_tips(self):
        self.type("strings.HasPre")
        self.press(Qt.Key_Tab)
        self.until(lambda: self.widget.input_buffer == "strings.HasPrefix", "the one candidate, filled in")
        self.type("(")
        tip = self.widget._call_tip_widget
        self.until(tip.isVisible, "a call tip after the parenthesis")
        self.assertIn("HasPrefix(s, prefix string) bool", tip.text())
        self.type('"go", "g")')
        self.press(Qt.Key_Return)
        self.prompt(2)
        self.assertIn("true", self.text)

        self.type("strings.Has")
        self.press(Qt.Key_Tab)
        self.until(lambda: self.text.split("strings.Has")[-1].split() == ["HasPrefix", "HasSuffix"], "the candidates")

    def test_charts_are_drawn(self):
        for cell in ('TraceRouter("Paris", Params{MaxTokens: 4, Quiet: true})', 'Display(Bars("bars", []string{"a", "b"}, []float64{1, 2}))'):
            with self.subTest(cell):
                drawn = len(self.widget._name_to_svg_map)
                self.run_cell(cell)
                self.assertEqual(len(self.widget._name_to_svg_map), drawn + 1)
                name = list(self.widget._name_to_svg_map)[-1]
                picture = self.widget._get_image(name)
                colours = {picture.pixel(x, y) for x in range(0, picture.width(), 3) for y in range(0, picture.height(), 3)}
                self.assertGreater(len(colours), 3, "the chart is blank")

    def test_questions(self):
        self.type('name := Input("name? "); secret := Password("secret? ")')
        self.press(Qt.Key_Return)
        self.until(lambda: self.widget._reading and self.text.endswith("name? "), "the question")
        self.type("Ada")
        self.press(Qt.Key_Return)
        self.until(lambda: self.widget._reading and self.text.endswith("secret? "), "the second question")
        self.type("xyzzy")  # which this front end shows, and says so
        self.press(Qt.Key_Return)
        self.prompt(2)
        self.assertEqual(self.run_cell("fmt.Println(name, strings.ToUpper(secret))"), "Ada XYZZY")

    def test_interrupt_and_restart(self):
        self.run_cell("kept := 6")
        for i, (cell, begun) in enumerate(((LONG, "12, 13, 14"), ('fmt.Println("be" + "gun"); for { }', "begun"))):
            with self.subTest(cell):
                self.type(cell)
                self.press(Qt.Key_Return)
                self.until(lambda: begun in self.text, "the cell to begin")
                self.press(Qt.Key_C, Qt.ControlModifier)
                self.prompt(3 + i)
                self.assertIn("interrupted", self.text)
        self.assertIn("42", self.run_cell("kept * 7"))

        kernel = int(self.run_cell("fmt.Println(os.Getppid())"))
        heard = []
        self.client.iopub_channel.message_received.connect(lambda message: heard.append(message["msg_type"]))
        self.press(Qt.Key_Period, Qt.ControlModifier)
        self.until(lambda: not running(kernel), "the old kernel to end")
        self.until(lambda: "iopub_welcome" in heard, "the new kernel to be heard")
        self.type("kept")
        self.press(Qt.Key_Return)
        self.prompt(2)  # counted anew
        self.assertIn("undefined: kept", self.text)
        self.assertIn("Paris", self.run_cell('Generate("The capital of France is", Params{MaxTokens: 8});'))

    def test_pages_and_exit(self):
        page = self.run_cell("strings.HasPrefix?")
        self.assertIn("reports whether the string s begins with prefix", page, "a page so short is shown in place")
        self.type("exit")
        self.press(Qt.Key_Return)
        self.until(lambda: self.left, "to be asked to leave")

    def test_history_of_earlier_sessions(self):
        self.run_cell("fortyTwo := 6 * 7")
        again = RichJupyterWidget()
        self.addCleanup(again.deleteLater)
        client = self.manager.client()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        again.kernel_client = client
        self.until(lambda: again._history and again._history[-1] == "fortyTwo := 6 * 7", "the history")
