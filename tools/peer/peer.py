"""Measures llama.cpp and deltafin side by side on the embedded nano-k3's weights.

    peer.py [--deltafin bin/deltafin] [--dir out/peer] [--runs 5] [--threads 1,2]

llama.cpp comes from the source package of llama-cpp-python, is built for this CPU once (about 10
minutes on two cores), and stays in --dir, with a virtual environment for its converter. The two
engines run by turns, a process for each measurement; medians are printed, with the range.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
CONVERTER = ["torch", "transformers", "numpy", "pyyaml", "tqdm", "requests", "safetensors"]
FLAGS = [
    "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_SERVER=OFF",
]  # fmt: skip

# What is measured: a name, then the arguments for each engine.
TESTS = [
    ("prefill 128", ["-p", "128", "-n", "0"], ["prefill", "--prompts", "128"]),
    ("prefill 512", ["-p", "512", "-n", "0"], ["prefill", "--prompts", "512"]),
    ("decode", ["-p", "0", "-n", "64"], ["decode", "--contexts", "0", "--tokens", "64"]),
    ("decode at 2048", ["-p", "0", "-n", "64", "-d", "2048"], ["decode", "--contexts", "2048", "--tokens", "64"]),
]


def say(text):
    print(text, file=sys.stderr, flush=True)


class Peer:
    def __init__(self, directory, deltafin):
        self.dir, self.deltafin = directory.resolve(), str(deltafin.resolve())
        self.dir.mkdir(parents=True, exist_ok=True)
        self.python = self.dir / "venv" / "bin" / "python"
        self.source = self.dir / f"{PACKAGE.replace('-', '_')}-{VERSION}" / "vendor" / "llama.cpp"
        self.bench = self.dir / f"build-{VERSION}" / "bin" / "llama-bench"
        self.model = self.dir / f"nano-k3-{VERSION}.gguf"

    def run(self, name, *command):
        """Runs a step of the preparation; its output goes to a file that an error names."""
        log = self.dir / f"{name}.log"
        with open(log, "w") as f:
            if subprocess.run([str(c) for c in command], stdout=f, stderr=subprocess.STDOUT).returncode:
                sys.exit(f"peer: {name} failed; see the end of {log}:\n" + "".join(open(log).readlines()[-5:]))

    def pip(self, name, *arguments):
        self.run(name, self.python, "-m", "pip", "--disable-pip-version-check", *arguments)

    def venv(self):
        if not self.python.exists():
            self.run("venv", sys.executable, "-m", "venv", self.dir / "venv")

    def fetch(self):
        if self.source.exists():
            return
        say(f"fetching the source of {PACKAGE} {VERSION}")
        self.venv()
        self.pip("tools", "install", "scikit-build-core")
        self.pip("fetch", "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", f"{PACKAGE}=={VERSION}", "-d", self.dir)
        (archive,) = self.dir.glob(f"llama_cpp_python-{VERSION}.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(self.dir)

    def build(self):
        if self.bench.exists():
            return
        self.fetch()
        say("building llama.cpp for this CPU: about 10 minutes on two cores, once")
        into = self.bench.parent.parent
        self.run("configure", "cmake", "-S", self.source, "-B", into, *FLAGS)
        self.run("build", "cmake", "--build", into, "--target", "llama-bench", "--parallel", os.cpu_count())

    def convert(self):
        if self.model.exists():
            return
        self.fetch()
        self.venv()
        say("installing the converter's packages")
        self.pip("packages", "install", *CONVERTER)
        say("converting nano-k3")
        half = self.model.with_suffix(".half")
        self.run("convert", self.python, Path(__file__).with_name("convert.py"), self.source, self.snapshot(), half)
        half.rename(self.model)

    def snapshot(self):
        """The embedded model's directory, unpacked."""
        state = self.dir / "state"
        subprocess.run([self.deltafin, "tokenize", "x"], env=os.environ | {"DELTAFIN_STATE": str(state), "DELTAFIN_MODEL": ""}, check=True, stdout=subprocess.DEVNULL)
        found = sorted(state.glob("cache/models/nano-k3*/config.json"))
        if not found:
            sys.exit(f"peer: no unpacked nano-k3 in {state}; is there space on its disk?")
        return found[-1].parent

    def ours(self, threads, arguments):
        out = self.output([self.deltafin, "bench", *arguments, "--runs", "1", "--threads", str(threads), "--json"])
        return json.loads(out)["results"][0]["tokens_per_s"]["median"]

    def theirs(self, threads, arguments):
        out = self.output([str(self.bench), "-m", str(self.model), "-t", str(threads), "-r", "1", "-o", "jsonl", *arguments])
        return json.loads(out.splitlines()[-1])["avg_ts"]

    @staticmethod
    def output(command):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"DELTAFIN_MODEL": ""})
        if done.returncode:
            sys.exit(f"peer: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return done.stdout.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--deltafin", type=Path, default=Path("bin/deltafin"))
    p.add_argument("--dir", type=Path, default=Path("out/peer"))
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--threads", default=",".join(map(str, sorted({1, os.cpu_count()}))))
    a = p.parse_args()
    peer = Peer(a.dir, a.deltafin)
    peer.build()
    peer.convert()
    threads = [int(n) for n in a.threads.split(",")]
    load = os.getloadavg()[0]
    results = {}
    try:
        for run in range(a.runs):
            for n in threads:
                for name, theirs, ours in TESTS:
                    say(f"run {run + 1} of {a.runs}: {name}, {n} threads")
                    pair = peer.ours(n, ours), peer.theirs(n, theirs)
                    results.setdefault((n, name), []).append(pair)
    except KeyboardInterrupt:
        say("interrupted: what there is")
    print(f"nano-k3, tokens/s: the median of {max(map(len, results.values()), default=0)} runs by turns (lowest to highest); load {load:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print(f"{'threads':>7}  {'':<15}{'deltafin':>22}{'llama.cpp, bf16':>22}{'ratio':>8}")

    def cell(values):
        return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"

    for (n, name), pairs in results.items():
        mine, other = zip(*pairs)
        print(f"{n:>7}  {name:<15}{cell(mine):>22}{cell(other):>22}{statistics.median(mine) / statistics.median(other):>8.2f}")


main()
