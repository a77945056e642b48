"""JupyterLab in a real browser."""

import contextlib
import json
import shutil

from playwright.sync_api import expect

from lab import Notebook, browser, drawn, server
from session import LONG, QUICKSTART, ROOT, FrontEndTest, running, until

ERROR = '[data-mime-type="application/vnd.jupyter.stderr"], [data-mime-type="application/vnd.jupyter.error"]'
STDOUT = '[data-mime-type="application/vnd.jupyter.stdout"]'


class Browser(FrontEndTest):
    """One server and one browser; each test opens a notebook of its own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.work = cls.dir / "notebooks"
        cls.work.mkdir()
        url, token = cls.stack.enter_context(server(cls.dir, cls.work))
        cls.page = cls.stack.enter_context(browser(cls.dir, 1200, 1050))
        cls.page.goto(f"{url}lab?token={token}")
        expect(cls.page.locator("#jp-main-statusbar")).to_be_visible()

    def notebook(self, *cells):
        """Opens a notebook of this test's name."""
        notebook = Notebook(self.page, self.work, f"{self._testMethodName.removeprefix('test_')}.ipynb", *cells)
        self.addCleanup(self.leave, notebook)
        return notebook

    def leave(self, notebook):
        if not self._outcome.success:
            (ROOT / "out").mkdir(exist_ok=True)
            picture = ROOT / "out" / f"{self._testMethodName}.png"
            self.page.screenshot(path=str(picture))
            print(f"the page when it failed: {picture}")
        notebook.leave()

    def test_quickstart(self):
        shutil.copy(QUICKSTART, self.work / "quickstart.ipynb")
        notebook = self.notebook()
        cells = [cell["cell_type"] for cell in json.loads(QUICKSTART.read_text())["cells"]]
        notebook.run_all()
        expect(notebook.panel.locator(".jp-InputPrompt", has_text=f"[{cells.count('code')}]:")).to_be_visible(timeout=300_000)
        notebook.idle()

        self.look_at_quickstart(notebook)
        notebook.save()
        notebook.close()
        notebook.open()
        self.look_at_quickstart(notebook)

    def look_at_quickstart(self, notebook):
        expect(notebook.panel.locator(STDOUT).first).to_contain_text("Paris")
        expect(notebook.panel.locator(".jp-OutputArea-executeResult").first).to_be_attached()
        expect(notebook.panel.locator(ERROR)).to_have_count(0)
        drawn(notebook.panel.locator(".jp-RenderedVegaCommon5").first)

    def test_error(self):
        # The cell fails once the browser has sent the next one too.
        gate = self.work / "sent"
        notebook = self.notebook(
            f'for _, err := os.Stat({json.dumps(str(gate))}); err != nil; _, err = os.Stat({json.dumps(str(gate))}) {{\n\ttime.Sleep(time.Millisecond)\n}}\n'
            'numbers := []int{1, 2}\nfmt.Println(numbers[len(numbers)])\nfmt.Println("not reached")', 'fmt.Println("not run")')
        notebook.run_all()
        expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[*]:")
        gate.touch()
        error = notebook.outputs(0)
        expect(error).to_contain_text("index out of range")
        expect(error).to_contain_text("→   5 | fmt.Println(numbers[len(numbers)])")
        marked = error.locator("span", has_text="→   5 |")
        expect(marked).to_be_visible()
        self.assertNotEqual(marked.evaluate("e => getComputedStyle(e).color"),
                            error.locator("pre").evaluate("e => getComputedStyle(e).color"), "the line has the colour of the rest")
        notebook.idle()
        expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[ ]:")

    def test_progress(self):
        notebook = self.notebook('bar := Progress(400)\nbar.Title("rows")\nfor range 400 {\n\ttime.Sleep(5 * time.Millisecond)\n\tbar.Add(1)\n}')
        notebook.start(0)
        output = notebook.outputs(0)
        expect(output).to_contain_text("of 400")
        first = output.inner_text()
        self.assertNotIn("400 of 400", first)
        until(lambda: output.inner_text() != first, "the progress to change")
        expect(output).to_have_count(1)
        notebook.idle()
        expect(output).to_contain_text("100 %  400 of 400")
        expect(output).to_have_count(1)
        saved, = notebook.save().cells[0].outputs
        self.assertIn("400 of 400", saved.data["text/plain"])

    def test_completion_and_tooltip(self):
        notebook = self.notebook("", "")
        keyboard = self.page.keyboard
        notebook.focus(0)
        keyboard.type("strings.Has")
        keyboard.press("Tab")
        popup = self.page.locator(".jp-Completer:visible")
        expect(popup.locator(".jp-Completer-item")).to_have_count(2)
        suffix = popup.locator(".jp-Completer-item", has_text="HasSuffix")
        expect(suffix).to_contain_text("func")
        suffix.click()
        expect(popup).to_have_count(0)
        keyboard.type('("go", "o")')
        notebook.run(0)
        expect(notebook.outputs(0)).to_have_text("true")

        notebook.focus(1)
        keyboard.type("Generate")
        keyboard.press("Shift+Tab")
        tip = self.page.locator(".jp-Tooltip")
        expect(tip).to_contain_text("func Generate(prompt string, p ...Params) *Generation")
        expect(tip).to_contain_text("continues a prompt and streams the new text")
        keyboard.press("Escape")
        expect(tip).to_have_count(0)

    def test_stop_button(self):
        notebook = self.notebook('before := Generate("Paris", Params{MaxTokens: 1, Quiet: true})\nkept := 6', LONG,
                                 'g := Generate("Paris", Params{MaxTokens: 1, Quiet: true})\nfmt.Println(Last().Stats.Loads == before.Stats.Loads, kept)')
        notebook.run(0)
        notebook.start(1)
        text = notebook.cell(1).locator(STDOUT)
        expect(text).to_contain_text("12, 13, 14")
        notebook.tool("interrupt")
        expect(notebook.outputs(1).last).to_contain_text("interrupted")
        notebook.idle()
        expect(text).to_contain_text("12, 13, 14")
        notebook.run(2)
        expect(notebook.outputs(2)).to_have_text("true 6")

    def test_restart(self):
        notebook = self.notebook('gone := 6\nfmt.Println(os.Getppid())', "fmt.Println(gone)", 'fmt.Println(Generate("The capital of France is", Params{MaxTokens: 8, Quiet: true}))')
        notebook.run(0)
        notebook.run(1)
        expect(notebook.outputs(1)).to_have_text("6")
        kernel = int(notebook.outputs(0).inner_text())
        notebook.tool("restart")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        until(lambda: not running(kernel), "the old kernel to end")
        notebook.idle()
        notebook.start(1)
        expect(notebook.outputs(1)).to_contain_text("undefined: gone")
        notebook.idle()
        notebook.run(2)
        expect(notebook.outputs(2)).to_contain_text("Paris")

    def test_slider(self):
        notebook = self.notebook(
            'n := IntSlider("MaxTokens", 1, 40, 3)\nout := Output()\nn.OnChange(func(v int) {\n\tout.Clear()\n'
            '\tout.Run(func() { fmt.Print(v, ":", len(Generate("1, 2, 3,", Params{MaxTokens: v, Quiet: true}).IDs)) })\n})\nVBox(n, out)',
            'fmt.Println(n.Value(), len(Generate("1, 2, 3,", Params{MaxTokens: n.Value(), Quiet: true}).IDs))', "n.Set(30)")
        notebook.run(0)
        handle = notebook.cell(0).locator(".noUi-handle")
        expect(handle).to_be_visible()
        expect(notebook.cell(0).locator(".widget-readout")).to_have_text("3")
        notebook.run(1)
        expect(notebook.outputs(1)).to_have_text("3 3")

        # Live: the callback runs the model anew and fills the Output in place.
        handle.focus()
        for _ in range(4):
            self.page.keyboard.press("ArrowRight")
        expect(notebook.cell(0).locator(".widget-readout")).to_have_text("7")
        expect(notebook.cell(0).locator(".widget-output")).to_have_text("7:7")
        notebook.idle()
        notebook.run(1)
        expect(notebook.outputs(1)).to_have_text("7 7")

        # A cell that sets the value moves the handle.
        notebook.run(2)
        expect(notebook.cell(0).locator(".widget-readout")).to_have_text("30")
        expect(notebook.cell(0).locator(".widget-output")).to_have_text("30:30")
