"""jupyter console in a terminal, as a person uses it: its whole interface of prompt_toolkit."""

from session import KERNEL, LONG, FrontEndTest, running, until
from terminal import Terminal

TAB, UP, CTRL_C, CTRL_D = "\t", "\x1b[A", "\x03", "\x04"


class ConsoleTest(FrontEndTest):
    def console(self, *arguments):
        terminal = Terminal("jupyter", "console", *(arguments or ("--kernel", KERNEL)), cwd=self.dir)
        self.addCleanup(terminal.close)
        terminal.prompt(1)
        return terminal


class Conversation(ConsoleTest):
    """One console, and what is said to it."""

    def setUp(self):
        self.terminal = self.console()

    def test_conversation(self):
        t = self.terminal
        self.assertIn("deltafin", t.text, "the banner")
        self.assertEqual(t.run("x := 20"), "")
        self.assertRegex(t.run("x + 22"), r"^Out\[2\]: 42$")
        self.assertEqual(t.run('fmt.Println("hello")'), "hello")
        error = t.run("undefinedName + 1")
        self.assertIn("undefinedName", error)
        self.assertIn("→   1 | undefinedName + 1", error, "the line is marked")
        self.assertIn("Paris", t.run('Generate("The capital of France is", Params{MaxTokens: 8});'))

        with self.subTest("a function over several lines"):
            self.assertEqual(t.run("func twice(n int) int {", "return 2 * n", "}"), "...:     return 2 * n\n   ...:     }")
            self.assertIn("42", t.run("twice(x + 1)"))

        with self.subTest("documentation is paged"):
            page = t.run("strings.HasPrefix?")
            self.assertIn("func HasPrefix(s, prefix string) bool", page.replace("\n", " "))
            self.assertIn("reports whether the string s begins with prefix", page)

    def test_completion(self):
        t = self.terminal
        t.type("strings.Has")
        t.press(TAB)
        t.until(lambda: "HasPrefix" in t.text and "HasSuffix" in t.text, "the candidates HasPrefix and HasSuffix")
        t.press(CTRL_C)  # leaves the menu and the line
        t.prompt(1)
        t.type("strings.HasPre")
        t.press(TAB)
        t.shows("strings.HasPrefix")
        t.press('("go", "g")\r')
        self.assertIn("true", t.output(2))

    def test_interrupt(self):
        t = self.terminal
        t.run("kept := 6")
        for cell in ('fmt.Println("begun"); for { }', 'fmt.Println("begun"); time.Sleep(time.Hour)'):
            with self.subTest(cell):
                prompts = t.prompts
                t.start(cell)
                t.until(lambda: "\nbegun" in "\n".join(t.lines[t.screen.cursor.y - 2:]), "the cell to begin")
                t.press(CTRL_C)
                self.assertIn("interrupted", t.output(prompts + 1))
        with self.subTest("a generation"):
            prompts = t.prompts
            t.start(LONG)
            t.shows("12, 13, 14")
            t.press(CTRL_C)
            self.assertIn("interrupted", t.output(prompts + 1))
            self.assertIn("true interrupted 1", t.run('fmt.Println(strings.Contains(Last().Text, "12, 13, 14"), Last().Finish, Last().Stats.Loads)'))
        self.assertIn("42", t.run("kept * 7"))

    def test_input(self):
        t = self.terminal
        t.start('name := Input("name? "); secret := Password("secret? ")')
        t.until(lambda: t.lines[t.screen.cursor.y] == "name?", "the question")
        t.type("Ada")
        t.press("\r")
        t.until(lambda: t.lines[t.screen.cursor.y] == "secret?", "the second question")
        t.press("xyzzy\r")
        t.prompt(2)
        self.assertNotIn("xyzzy", t.text)
        self.assertEqual(t.run("fmt.Println(name, strings.ToUpper(secret))"), "Ada XYZZY")

        with self.subTest("an interrupt while a question is open"):
            prompts = t.prompts
            t.start('Input("again? ")')
            t.until(lambda: t.lines[t.screen.cursor.y] == "again?", "the question")
            t.press(CTRL_C)
            self.assertIn("interrupted", t.output(prompts + 1))
            self.assertEqual(t.run("fmt.Println(name)"), "Ada")


class Sessions(ConsoleTest):
    def leave(self, terminal):
        """Leaves with Ctrl-D, and sees that the kernel ends too."""
        kernel = int(terminal.run("fmt.Println(os.Getppid())"))
        self.assertTrue(running(kernel))
        terminal.press(CTRL_D)
        terminal.shows("Do you really want to exit")
        terminal.press("y\r")
        self.assertEqual(terminal.end(), 0)
        until(lambda: not running(kernel), "the kernel to end with the console")

    def test_exit(self):
        for word in ("exit", "quit"):
            with self.subTest(word):
                terminal = self.console()
                kernel = int(terminal.run("fmt.Println(os.Getppid())"))
                terminal.type(word)
                terminal.press("\r")
                self.assertEqual(terminal.end(), 0)
                until(lambda: not running(kernel), "the kernel to end with the console")

    def test_history_outlives_the_console(self):
        first = self.console()
        first.run("fortyTwo := 6 * 7")
        self.leave(first)
        second = self.console()
        second.press(UP)
        second.shows("fmt.Println(os.Getppid())")
        second.press(UP)
        second.until(lambda: second.lines[second.screen.cursor.y].endswith("fortyTwo := 6 * 7"), "the cell before")
        second.press("\r")
        second.prompt(2)
        self.assertIn("42", second.run("fortyTwo"))
