#!/bin/sh
# Makes .venv with the front ends of tools/requirements.txt; does nothing when it
# is there already. PYTHON chooses another Python than python3.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "tools/venv.sh: $1" >&2
	exit 1
}

made=$(cat tools/requirements.txt tools/venv.sh | cksum)
if [ -x .venv/bin/python ] && [ "$(cat .venv/made-from 2>/dev/null)" = "$made" ]; then
	exit 0
fi

python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 ||
	fail "$python not found; install Python 3.10 or newer (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python), or set PYTHON"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
	fail "$python is $("$python" -V 2>&1); want 3.10 or newer: install one and set PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
	fail "$python has no venv or ensurepip; install it (Debian, Ubuntu: apt install python3-venv) and run this again"

echo "making .venv with $("$python" -V) and the front ends of tools/requirements.txt" >&2
rm -rf .venv
"$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements.txt ||
	fail "pip could not install tools/requirements.txt; see its message above (it needs a package index to reach)"
printf '%s' "$made" > .venv/made-from
