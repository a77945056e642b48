#!/bin/sh
# Finds a program, installs its Debian package where that can be done, or says what
# to install. Prints the program's path.
# Usage: tools/need.sh PACKAGE PROGRAM…   (any one of the programs will do)
set -eu
package=$1
shift

find_one() {
	for program in "$@"; do
		if command -v "$program" 2>/dev/null; then
			return 0
		fi
	done
	return 1
}

find_one "$@" && exit 0
if command -v apt-get >/dev/null 2>&1; then
	root=
	[ "$(id -u)" = 0 ] || root="sudo -n"
	if [ -z "$root" ] || sudo -n true 2>/dev/null; then
		echo "installing Debian's package $package" >&2
		{ $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package"; } >&2 ||
			echo "tools/need.sh: apt-get could not install $package" >&2
	fi
fi
find_one "$@" && exit 0
echo "tools/need.sh: none of these programs found: $*; install the package $package (Debian, Ubuntu: apt install $package)" >&2
exit 1
