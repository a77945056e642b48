"""Several front ends on one kernel: each sees what the others run, and none is disturbed when one goes."""

import signal
import subprocess
import sys

from jupyter_client import KernelManager

from session import KERNEL, LONG, FrontEndTest
from terminal import Terminal

MINUTE = 60

# A front end that runs a cell on an existing kernel, names the request once its output has come, and waits to be killed.
DOOMED = """
import sys
from jupyter_client import BlockingKernelClient

client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=60)
request = client.execute(sys.argv[2])
while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
    pass
client.complete("strings.Has")
print(request, flush=True)
client.get_stdin_msg(timeout=600)
"""


class TwoClients(FrontEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.manager = KernelManager(kernel_name=KERNEL)
        cls.manager.start_kernel()

    @classmethod
    def tearDownClass(cls):
        cls.manager.shutdown_kernel()
        super().tearDownClass()

    def client(self):
        """A front end with a session and sockets of its own."""
        client = self.manager.blocking_class(connection_file=self.manager.connection_file)
        client.load_connection_file()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        client.wait_for_ready(timeout=MINUTE)
        while client.shell_channel.msg_ready():  # wait_for_ready may ask more than once
            client.get_shell_msg(timeout=MINUTE)
        return client

    def outputs(self, client, parent):
        """The messages on iopub that belong to one request, up to idle; what isn't its own is passed over."""
        found = []
        while True:
            message = client.get_iopub_msg(timeout=MINUTE)
            if message["parent_header"].get("msg_id") != parent:
                continue
            if message["msg_type"] == "status":
                if message["content"]["execution_state"] == "idle":
                    return found
                continue
            found.append((message["msg_type"], message["content"]))

    def wait_for_text(self, client, parent, text):
        seen = ""
        while text not in seen:
            message = client.get_iopub_msg(timeout=MINUTE)
            if message["msg_type"] == "stream" and message["parent_header"].get("msg_id") == parent:
                seen += message["content"]["text"]

    def reply(self, client, request):
        """The next reply on a client's shell, which has to be the one to request."""
        message = client.get_shell_msg(timeout=MINUTE)
        self.assertEqual(message["parent_header"]["msg_id"], request)
        self.assertEqual(message["parent_header"]["session"], client.session.session)
        return message["content"]

    def run_cell(self, client, code):
        """Runs a cell and returns what it wrote; an error is a failure."""
        request = client.execute(code)
        self.assertEqual(self.reply(client, request)["status"], "ok")
        return "".join(content["text"] for kind, content in self.outputs(client, request) if kind == "stream")

    def interrupt(self, client):
        client.control_channel.send(client.session.msg("interrupt_request"))
        self.assertEqual(client.get_control_msg(timeout=MINUTE)["msg_type"], "interrupt_reply")

    def test_each_sees_the_other(self):
        first, second = self.client(), self.client()
        code = 'shared := 6\nfmt.Println("from the first")\nshared * 7'
        request = first.execute(code)
        self.assertEqual(self.reply(first, request)["status"], "ok")
        for client in first, second:
            (_, entered), (_, stream), (_, result) = self.outputs(client, request)
            self.assertEqual(entered["code"], code)
            self.assertEqual(stream["text"], "from the first\n")
            self.assertEqual(result["data"]["text/plain"], "42")
            self.assertEqual(result["execution_count"], entered["execution_count"])
        self.assertEqual(self.run_cell(second, "fmt.Println(shared)"), "6\n")
        self.assertFalse(first.shell_channel.msg_ready(), "the first got a reply to what the second asked")

    def test_questions_go_to_who_ran_the_cell(self):
        first, second = self.client(), self.client()
        request = second.execute('fmt.Println("hello,", Input("name? "))')
        question = second.get_stdin_msg(timeout=MINUTE)
        self.assertEqual(question["content"]["prompt"], "name? ")
        self.assertFalse(first.stdin_channel.msg_ready())
        second.input("second")
        self.assertEqual(self.reply(second, request)["status"], "ok")
        self.assertIn(("stream", {"name": "stdout", "text": "hello, second\n"}), self.outputs(first, request))

    def test_both_complete_while_a_cell_runs(self):
        first, second = self.client(), self.client()
        running = first.execute(LONG)
        self.wait_for_text(second, running, "12, 13")
        asked = [(client, client.complete("strings.HasPre")) for client in (first, second) for _ in range(3)]
        for client, request in asked:
            self.assertEqual(self.reply(client, request)["matches"], ["HasPrefix"])
        request = second.inspect("Generate")
        self.assertTrue(self.reply(second, request)["found"])
        waiting = second.execute('fmt.Println("after")', stop_on_error=False)  # behind the cell of the first
        behind = second.complete("strings.HasPre")  # what answers this has received that
        self.assertEqual(self.reply(second, behind)["matches"], ["HasPrefix"])

        self.interrupt(second)
        self.assertEqual(self.reply(first, running)["ename"], "interrupted")
        self.assertEqual(self.reply(second, waiting)["status"], "aborted")
        self.assertEqual(self.run_cell(second, 'fmt.Println(Last().Finish)'), "interrupted\n")

    def test_one_that_is_killed(self):
        client = self.client()
        self.run_cell(client, "count := 0")
        for code in ('fmt.Println("begun"); for count < 1000 { count++; fmt.Println(count); time.Sleep(time.Millisecond) }',
                     'fmt.Println("begun"); Input("never answered? ")'):
            with self.subTest(code):
                doomed = subprocess.Popen([sys.executable, "-c", DOOMED, self.manager.connection_file, code],
                                          stdout=subprocess.PIPE, text=True)
                self.addCleanup(doomed.stdout.close)
                left = doomed.stdout.readline().strip()
                self.assertTrue(left)
                doomed.send_signal(signal.SIGKILL)
                doomed.wait()
                request = client.complete("strings.HasPre")
                self.assertEqual(self.reply(client, request)["matches"], ["HasPrefix"])
                if "Input" in code:  # nobody is left to answer
                    self.interrupt(client)
                self.outputs(client, left)
                self.assertEqual(self.run_cell(client, "fmt.Println(count)"), "1000\n")

    def test_one_that_closes_its_sockets(self):
        staying, leaving = self.client(), self.client()
        running = staying.execute('fmt.Println("begun"); for i := range 500 { fmt.Println("line", i); time.Sleep(time.Millisecond) }')
        self.wait_for_text(leaving, running, "begun")
        leaving.complete("strings.Has")
        for channel in leaving.shell_channel, leaving.iopub_channel, leaving.stdin_channel, leaving.control_channel:
            channel.socket.close(linger=0)
        lines = "".join(content["text"] for kind, content in self.outputs(staying, running) if kind == "stream").splitlines()
        self.assertEqual(lines, ["begun"] + [f"line {i}" for i in range(500)])
        self.assertEqual(self.reply(staying, running)["status"], "ok")

    def test_a_console_beside_a_notebook(self):
        notebook = self.client()
        self.run_cell(notebook, "beside := 41")
        console = Terminal("jupyter", "console", "--existing", self.manager.connection_file,
                           "--ZMQTerminalInteractiveShell.include_other_output=True", cwd=self.dir)
        self.addCleanup(console.close)
        console.prompt(1)
        self.assertIn("42", console.run("beside + 1"))
        while (message := notebook.get_iopub_msg(timeout=MINUTE))["msg_type"] != "execute_input":
            pass
        self.assertEqual(message["content"]["code"], "beside + 1")

        self.run_cell(notebook, 'beside++; fmt.Println("from the notebook")')
        console.shows('beside++; fmt.Println("from the notebook")\nfrom the notebook')

        console.child.kill(signal.SIGKILL)
        self.assertEqual(self.run_cell(notebook, "fmt.Println(beside)"), "42\n")
