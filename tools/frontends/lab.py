"""A JupyterLab server and a browser that shows it.

CHROMIUM names the browser (default: chromium on the PATH)."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import nbformat
from playwright.sync_api import expect, sync_playwright

from session import KERNEL, until

MINUTE = 60_000  # playwright counts milliseconds
expect.set_options(timeout=MINUTE)

# How many colours the picture in an element has. One that is drawn has many; an empty canvas has one.
COLOURS = """element => {
    const canvas = element.querySelector("canvas");
    if (!canvas) return 0;
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
}"""


@contextlib.contextmanager
def server(home, work):
    """Serves work, with the log in home; yields the address and the token."""
    settings = pathlib.Path(os.environ["JUPYTER_CONFIG_DIR"]) / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False, "doNotDisturbMode": True, "fetchNews": "false"}}))
    with open(home / "lab.log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0",
             "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={work}", "--LabApp.expose_app_in_browser=True"],
            cwd=work, stdout=log, stderr=subprocess.STDOUT)

        def started():
            assert process.poll() is None, (home / "lab.log").read_text()
            for found in pathlib.Path(os.environ["JUPYTER_RUNTIME_DIR"]).glob("jpserver-*.json"):
                with contextlib.suppress(json.JSONDecodeError):  # still being written
                    return json.loads(found.read_text())

        try:
            info = until(started, "JupyterLab to start")
            yield info["url"], info["token"]
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def browser(home, width, height, scale=1):
    """A page of a browser of its own."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium, "no Chromium found; install it (Debian: apt install chromium) or set CHROMIUM"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(home / "browser profile"), executable_path=chromium, headless=True,
            viewport={"width": width, "height": height}, device_scale_factor=scale,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update", "--disable-sync"])
        try:
            page = context.pages[0]
            page.set_default_timeout(MINUTE)
            yield page
        finally:
            context.close()


class Notebook:
    """A notebook that is open in the page."""

    def __init__(self, page, work, name, *cells):
        """Opens the notebook of that name; with cells it is written first."""
        self.page, self.path = page, work / name
        if cells:
            nbformat.write(nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(c) for c in cells],
                metadata={"kernelspec": {"name": KERNEL, "display_name": "Go (deltafin)", "language": "go"}}), self.path)
        self.open()

    def command(self, name, **arguments):
        """Has JupyterLab carry out one of its commands, and waits until it has."""
        self.page.evaluate("async ([name, arguments]) => { await window.jupyterapp.commands.execute(name, arguments) }", [name, arguments])

    def open(self):
        self.command("docmanager:open", path=self.path.name)
        self.panel = self.page.locator(".jp-NotebookPanel:visible")
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-current .lm-TabBar-tabLabel")).to_have_text(self.path.name)
        self.idle()

    def idle(self):
        expect(self.page.locator("#jp-main-statusbar").get_by_text("| Idle")).to_be_visible()

    def cell(self, i):
        return self.panel.locator(".jp-Cell").nth(i)

    def outputs(self, i):
        return self.cell(i).locator(".jp-OutputArea-output")

    def focus(self, i):
        self.cell(i).locator(".cm-content").click()

    def start(self, i):
        """Runs a cell and doesn't wait for it."""
        self.focus(i)
        self.page.keyboard.press("Control+Enter")

    def run(self, i):
        """Runs a cell to its end."""
        prompt = self.cell(i).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.start(i)
        until(lambda: prompt.inner_text() not in (before, "[*]:") and prompt.inner_text().strip("[]: ").isdigit(), f"cell {i} to end")

    def run_all(self):
        self.page.locator("#jp-MainMenu").get_by_text("Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def tool(self, name):
        """Presses a button of the notebook's toolbar."""
        self.panel.locator(f'.jp-NotebookPanel-toolbar [data-jp-item-name="{name}"]').click()

    def save(self):
        """Saves it, and returns it as it is on disk once the server has written it."""
        before = self.path.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        until(lambda: self.path.stat().st_mtime_ns != before, "the notebook to be saved")
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty")).to_have_count(0)
        return nbformat.read(self.path, as_version=4)

    def leave(self):
        """Closes it without questions, and ends its kernel."""
        self.command("docmanager:save")
        self.command("application:close-all")
        expect(self.page.locator(".jp-NotebookPanel")).to_have_count(0)
        self.page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")

    def close(self):
        self.page.locator(".lm-TabBar-tab.jp-mod-current .lm-TabBar-tabCloseIcon").click()
        expect(self.panel).to_have_count(0)


def drawn(chart):
    """Waits until a chart's canvas has a picture."""
    chart.scroll_into_view_if_needed()
    expect(chart.locator("canvas")).to_be_visible()
    until(lambda: chart.evaluate(COLOURS) >= 10, "a chart that isn't blank")
