"""JupyterLab in a real browser runs the quickstart, and the charts are drawn.

CHROMIUM names the browser (default: chromium on the PATH). SCREENSHOT names a PNG
to write of the notebook with its heatmap (default: out/quickstart.png)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from playwright.sync_api import expect, sync_playwright

from session import QUICKSTART, ROOT, FrontEndTest

MINUTE = 60_000  # playwright counts milliseconds

# A chart that is drawn has pixels of many colours; an empty canvas has one.
COLOURS_IN_CHART = """element => {
    const canvas = element.querySelector("canvas");
    if (!canvas) return 0;
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
}"""


class Browser(FrontEndTest):
    def setUp(self):
        self.work = self.dir / "notebooks"
        self.work.mkdir()
        shutil.copy(QUICKSTART, self.work)
        self.url = self.start_lab()
        self.page = self.start_browser()

    def start_lab(self):
        settings = pathlib.Path(self.environ["JUPYTER_CONFIG_DIR"]) / "labconfig" / "default_setting_overrides.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"@jupyterlab/apputils-extension:notification": {
            "checkForUpdates": False, "doNotDisturbMode": True, "fetchNews": "false"}}))
        log = open(self.dir / "lab.log", "w")
        lab = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0",
             "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={self.work}"],
            cwd=self.work, stdout=log, stderr=subprocess.STDOUT,
        )

        def stop():
            lab.terminate()
            lab.wait(30)
            log.close()

        self.addCleanup(stop)
        runtime = pathlib.Path(self.environ["JUPYTER_RUNTIME_DIR"])
        for _ in range(600):
            for found in runtime.glob("jpserver-*.json"):
                try:
                    server = json.loads(found.read_text())
                except json.JSONDecodeError:
                    continue  # still being written
                return f"{server['url']}lab/tree/{QUICKSTART.name}?token={server['token']}"
            self.assertIsNone(lab.poll(), (self.dir / "lab.log").read_text())
            time.sleep(0.1)
        self.fail("JupyterLab did not start:\n" + (self.dir / "lab.log").read_text())

    def start_browser(self):
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        self.assertTrue(chromium, "no Chromium found; install it (Debian: apt install chromium) or set CHROMIUM")
        playwright = sync_playwright().start()
        self.addCleanup(playwright.stop)
        context = playwright.chromium.launch_persistent_context(
            str(self.dir / "browser profile"), executable_path=chromium, headless=True,
            viewport={"width": 1200, "height": 1050},
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        )
        self.addCleanup(context.close)
        page = context.pages[0]
        page.set_default_timeout(2 * MINUTE)
        return page

    def test_quickstart(self):
        page = self.page
        page.goto(self.url)
        notebook = page.locator(".jp-NotebookPanel:visible")
        idle = page.locator("#jp-main-statusbar").get_by_text("| Idle")
        expect(idle).to_be_visible(timeout=2 * MINUTE)
        book = json.loads(QUICKSTART.read_text())
        cells = sum(cell["cell_type"] == "code" for cell in book["cells"])

        page.locator("#jp-MainMenu").get_by_text("Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        done = f"[{cells}]:"
        deadline = time.monotonic() + 300
        while notebook.locator(".jp-InputPrompt", has_text=done).count() == 0:
            self.assertLess(time.monotonic(), deadline, f"the notebook did not reach cell {done}")
            time.sleep(0.5)
        expect(idle).to_be_visible(timeout=2 * MINUTE)

        stream = notebook.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stdout"]')
        expect(stream.first).to_contain_text("Paris")
        expect(notebook.locator(".jp-OutputArea-executeResult").first).to_be_attached()
        self.assertEqual(notebook.locator('[data-mime-type="application/vnd.jupyter.error"]').count(), 0)

        chart = notebook.locator(".jp-RenderedVegaCommon5").first
        chart.scroll_into_view_if_needed()
        expect(chart.locator("canvas")).to_be_visible()
        colours = 0
        for _ in range(50):
            colours = chart.evaluate(COLOURS_IN_CHART)
            if colours >= 10:
                break
            time.sleep(0.2)
        self.assertGreaterEqual(colours, 10, "the heatmap's canvas is blank")

        picture = pathlib.Path(os.environ.get("SCREENSHOT") or ROOT / "out" / "quickstart.png")
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.locator('.jp-SideBar.jp-mod-left [data-id="filebrowser"]').click()  # out of the picture
        chart.scroll_into_view_if_needed()
        page.screenshot(path=str(picture))
        print(f"screenshot: {picture}")
