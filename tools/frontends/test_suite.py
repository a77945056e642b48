"""jupyter_kernel_test's suite for kernels."""

import jupyter_kernel_test

from session import KERNEL, FrontEndTest


class Suite(FrontEndTest, jupyter_kernel_test.KernelTests):
    kernel_name = KERNEL
    language_name = "go"
    file_extension = ".go"

    code_hello_world = 'fmt.Println("hello, world")'
    code_stderr = 'fmt.Fprintln(os.Stderr, "oops")'
    completion_samples = [
        {"text": "strings.HasPre", "matches": {"HasPrefix"}},
        {"text": "Generat", "matches": {"Generate", "Generation", "GenerationStats"}},
        {"text": "Params{MaxT", "matches": {"MaxTokens"}},
        {"text": "nothing.Here", "matches": set()},
    ]
    complete_code_samples = ["x := 1", 'fmt.Println("hello, world")', "func f() int {\n\treturn 1\n}", "// a comment"]
    incomplete_code_samples = ["func f() {", "fmt.Println(", "x := []int{1,", "if true {\n\tfmt.Println()"]
    invalid_code_samples = ["x := := 1", "func 1f() {}", ")"]
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": 'strings.ToUpper("go")', "result": "GO"},
        {"code": 'HTML("<b>bold</b>")', "mime": "text/html", "result": "<b>bold</b>"},
        {"code": 'Bars("two", []string{"a", "b"}, []float64{1, 2})', "mime": "application/vnd.vegalite.v5+json"},
    ]
    code_display_data = [
        {"code": 'Display(HTML("<b>bold</b>"))', "mime": "text/html"},
        {"code": 'Display(Markdown("**bold**"))', "mime": "text/markdown"},
        {"code": 'Display(Image(image.NewGray(image.Rect(0, 0, 2, 2))))', "mime": "image/png"},
        {"code": "Progress(3).Add(1)", "mime": "text/html"},
    ]
    code_generate_error = 'panic("here")'
    code_inspect_sample = "strings.HasPrefix"
    code_history_pattern = "6 ?*7"
    supported_history_operations = ("tail", "range", "search")
    code_page_something = "Generate?"
    code_clear_output = 'fmt.Println("gone"); ClearOutput(false)'

    def test_no_sample_is_missing(self):
        for name, default in vars(jupyter_kernel_test.KernelTests).items():
            if default in ("", [], ()) and not name.startswith("_"):  # what makes the suite skip
                self.assertTrue(getattr(self, name), name)

    @classmethod
    def setUpClass(cls):
        FrontEndTest.setUpClass.__func__(cls)
        jupyter_kernel_test.KernelTests.setUpClass.__func__(cls)

    @classmethod
    def tearDownClass(cls):
        jupyter_kernel_test.KernelTests.tearDownClass.__func__(cls)
        FrontEndTest.tearDownClass.__func__(cls)


class Welcome(FrontEndTest, jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = KERNEL
    support_iopub_welcome = True

    @classmethod
    def setUpClass(cls):
        FrontEndTest.setUpClass.__func__(cls)
        jupyter_kernel_test.IopubWelcomeTests.setUpClass.__func__(cls)

    @classmethod
    def tearDownClass(cls):
        jupyter_kernel_test.IopubWelcomeTests.tearDownClass.__func__(cls)
        FrontEndTest.tearDownClass.__func__(cls)
