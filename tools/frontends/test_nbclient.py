"""nbclient and nbconvert execute notebooks."""

import nbclient
import nbformat

from session import KERNEL, QUICKSTART, ROOT, FrontEndTest


class Nbclient(FrontEndTest):
    def execute(self, *cells):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=120).execute()
        nbformat.validate(book)
        return book

    def test_stream_result_and_display(self):
        book = self.execute(
            "x := 6\nfmt.Println(\"hello\")\nx * 7",
            "func twice(n int) int { return 2 * n }\ntwice(x)",
        )
        stream, result = book.cells[0].outputs
        self.assertEqual((stream.output_type, stream.name, stream.text), ("stream", "stdout", "hello\n"))
        self.assertEqual(result.output_type, "execute_result")
        self.assertEqual(result.data["text/plain"], "42")
        self.assertEqual(book.cells[1].outputs[0].data["text/plain"], "12")

    def test_error_stops_the_notebook(self):
        with self.assertRaises(nbclient.exceptions.CellExecutionError) as caught:
            self.execute("undefinedName + 1", "fmt.Println(\"never\")")
        self.assertIn("undefinedName", str(caught.exception))

    def test_generation(self):
        book = self.execute("g := Generate(\"The capital of France is\", Params{MaxTokens: 8})", "g.Text")
        self.assertIn("Paris", "".join(o.text for o in book.cells[0].outputs if o.output_type == "stream"))
        self.assertIn("Paris", book.cells[1].outputs[0].data["text/plain"])


class Nbconvert(FrontEndTest):
    def nbconvert(self, *args):
        """Converts as make lab-headless does."""
        self.jupyter("nbconvert", "--config", str(ROOT / "tools" / "nbconvert" / "config.py"), "--output-dir", str(self.dir),
                     "--ExecutePreprocessor.timeout=120", *map(str, args))

    def test_quickstart(self):
        self.nbconvert("--to", "notebook", "--execute", QUICKSTART)
        book = nbformat.read(self.dir / QUICKSTART.name, as_version=4)
        for cell in book.cells:
            if cell.cell_type == "code":
                self.assertIsNotNone(cell.execution_count)
                self.assertFalse([o for o in cell.outputs if o.output_type == "error"])
        stream, _ = next(cell for cell in book.cells if cell.source.startswith("g := Generate(")).outputs
        self.assertIn("Paris. The Eiffel Tower is located in Paris.", stream.text)
        kinds = {mime for cell in book.cells if cell.cell_type == "code"
                 for output in cell.outputs for mime in output.get("data", {})}
        self.assertIn("application/vnd.vegalite.v5+json", kinds)

    def test_html_shows_the_charts(self):
        self.nbconvert("--to", "html", "--execute", QUICKSTART)
        page = (self.dir / QUICKSTART.with_suffix(".html").name).read_text()
        self.assertIn("<svg", page)
        self.assertIn("Paris. The Eiffel Tower is located in Paris.", page)
        self.assertRegex(page, r'<img alt="nano-k3: \d+ tokens[^"]*" src="data:image/svg')
        self.assertNotIn("No description has been provided for this image", page)
