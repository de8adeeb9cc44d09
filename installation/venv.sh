#!/bin/sh
# Makes a virtual environment: venv.sh PYTHON DIR. Says in one line what is missing.
set -eu
python=$1
dir=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "error: $python is not Python 3.11 or later: name one with make PYTHON=python3.11" >&2
    exit 2
fi
[ -x "$dir/bin/pip" ] && exit 0
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    # Debian ships the module in a package of its own.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -qq -y python3-venv >/dev/null
    else
        echo "error: $python has no venv: sudo apt-get install python3-venv" >&2
        exit 2
    fi
fi
echo "making $dir"
"$python" -m venv "$dir"
