"""nbclient and nbconvert execute notebooks."""

import nbclient
import nbformat

from session import KERNEL, LONG, QUICKSTART, ROOT, FrontEndTest


def stream(cell, name="stdout"):
    """What a cell wrote."""
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == name)


class Nbclient(FrontEndTest):
    def execute(self, *cells, **options):
        """Executes cells, each a source or a cell, and returns the notebook as it is read after it was saved."""
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) if isinstance(c, str) else c for c in cells])
        try:
            nbclient.NotebookClient(book, **{"kernel_name": KERNEL, "timeout": 120, **options}).execute()
        finally:
            nbformat.write(book, self.dir / "saved.ipynb")
            self.book = nbformat.read(self.dir / "saved.ipynb", as_version=4)
            nbformat.validate(self.book)
        return self.book

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
        failed, never = self.book.cells
        self.assertEqual(failed.outputs[0].output_type, "error")
        self.assertEqual((never.execution_count, never.outputs), (None, []))

    def test_errors_that_are_allowed(self):
        tagged = nbformat.v4.new_code_cell("kept := 7\npanic(\"tagged\")", metadata={"tags": ["raises-exception"]})
        book = self.execute(tagged, "fmt.Println(kept)")
        self.assertEqual(book.cells[0].outputs[0].evalue, "tagged")
        self.assertEqual(stream(book.cells[1]), "7\n")

        book = self.execute("kept := 6", "undefinedName + 1", "var none []int; none[kept]", "fmt.Println(kept)", allow_errors=True)
        self.assertEqual([[o.output_type for o in cell.outputs] for cell in book.cells], [[], ["error"], ["error"], ["stream"]])
        self.assertIn("index out of range", book.cells[2].outputs[0].evalue)
        self.assertEqual(stream(book.cells[3]), "6\n")

    # As papermill does it: what is given comes in a cell of its own after the defaults.
    def test_parameters(self):
        given = {
            ":=": 'prompt := "The capital of Italy is"\nwidth := 2.5\nwords := []string{"a", "b"}\ndeep := true',
            "var": 'var prompt = "The capital of Italy is"\nvar width float64 = 2.5\nvar words = []string{"a", "b"}\nvar deep = true',
            "other types": 'prompt := []byte("The capital of Italy is")\nwidth := 2.5\nwords := [2]string{"a", "b"}\ndeep := true',
        }
        for form, source in given.items():
            with self.subTest(form):
                book = self.execute(
                    nbformat.v4.new_code_cell('prompt := "The capital of France is"\nwidth := 1\nwords := []string{}\nvar deep bool',
                                              metadata={"tags": ["parameters"]}),
                    nbformat.v4.new_code_cell(source, metadata={"tags": ["injected-parameters"]}),
                    'g := Generate(string(prompt), Params{MaxTokens: 8, Quiet: true})\nfmt.Println(strings.Contains(g.Text, "Rome"))',
                    "func used() float64 { return width * float64(len(words)) }\nfmt.Println(used(), deep)",
                )
                self.assertEqual([cell.metadata.get("tags") for cell in book.cells[:2]], [["parameters"], ["injected-parameters"]])
                self.assertEqual(stream(book.cells[2]), "true\n")
                self.assertEqual(stream(book.cells[3]), "5 true\n")

    def test_timeout(self):
        with self.subTest("the notebook stops"), self.assertRaises(nbclient.exceptions.CellTimeoutError):
            self.execute("for { }", "1", timeout=1)
        for cell in ("for { }", "time.Sleep(time.Hour)", LONG, "<-time.After(time.Hour)"):
            with self.subTest(cell):
                # Only the cell that never ends has a timeout, so that a slow machine is no failure.
                book = self.execute("kept := 6", cell, "fmt.Println(kept)", timeout=None, allow_errors=True, interrupt_on_timeout=True,
                                    timeout_func=lambda c: 1 if c.source == cell else 120)
                error = book.cells[1].outputs[-1]
                self.assertEqual((error.output_type, error.ename), ("error", "interrupted"))
                self.assertEqual(stream(book.cells[2]), "6\n")

    def test_generation(self):
        book = self.execute("g := Generate(\"The capital of France is\", Params{MaxTokens: 8})", "g.Text")
        self.assertIn("Paris", stream(book.cells[0]))
        self.assertIn("Paris", book.cells[1].outputs[0].data["text/plain"])


class Nbconvert(FrontEndTest):
    def nbconvert(self, *args):
        """Converts as make lab-headless does."""
        self.jupyter("nbconvert", "--config", str(ROOT / "tools" / "nbconvert" / "config.py"), "--output-dir", str(self.dir),
                     "--ExecutePreprocessor.timeout=120", *map(str, args))

    def test_quickstart_and_its_page(self):
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

        self.nbconvert("--to", "html", self.dir / QUICKSTART.name)
        page = (self.dir / QUICKSTART.with_suffix(".html").name).read_text()
        self.assertIn("<svg", page)
        self.assertIn("Paris. The Eiffel Tower is located in Paris.", page)
        self.assertRegex(page, r'<img alt="nano-k3: \d+ tokens[^"]*" src="data:image/svg')
        self.assertNotIn("No description has been provided for this image", page)
