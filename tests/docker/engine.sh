#!/usr/bin/env bash
# A Docker engine for the tests marked `docker`, and a base image for it; needs no image registry.
#
#   tests/docker/engine.sh start DIR     starts dockerd with all its files in DIR; prints the
#                                        variables that the tests need, as lines for `export`
#   tests/docker/engine.sh stop DIR      ends it and removes DIR
#
# Needs root, dockerd, debootstrap and ip (Debian: apt-get install docker.io debootstrap iproute2).
# Its bridge is its own: two engines on one would give the same addresses to containers. The base
# image is a minimal Debian with Python, pip and the templates' requirements in it, so that
# building needs no network where a function has no requirements of its own.
set -euo pipefail

BASE_IMAGE=chiron-test-base:latest
SUITE=bookworm
SUITE_PYTHON=3.11
ROOT="$(cd "$(dirname "$0")/../.." && pwd)"

fail() { echo "error: $*" >&2; exit 2; }

start() {
    local dir="$1" missing=()
    [ "$(id -u)" = 0 ] || fail "only root can start dockerd"
    for tool in dockerd docker debootstrap ip; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    [ ${#missing[@]} = 0 ] || fail "missing: ${missing[*]} (apt-get install docker.io debootstrap iproute2)"
    mkdir -p "$dir"
    export DOCKER_HOST="unix://$dir/docker.sock"
    start_dockerd "$dir"
    if ! docker image inspect "$BASE_IMAGE" >/dev/null 2>&1 && ! make_base "$dir"; then
        tail -n 3 "$dir/base.log" >&2
        stop "$dir"
        fail "the base image cannot be made"
    fi
    echo "DOCKER_HOST=$DOCKER_HOST"
    echo "CHIRON_BASE_IMAGE=$BASE_IMAGE"
}

start_dockerd() {
    local dir="$1" bridge="chiron$$"
    ip link add "$bridge" type bridge
    echo "$bridge" >"$dir/bridge"
    ip address add "10.$((RANDOM % 256)).$((RANDOM % 256)).1/24" dev "$bridge"
    ip link set "$bridge" up
    dockerd --host "$DOCKER_HOST" --pidfile "$dir/pid" --data-root "$dir/data" \
        --exec-root "$dir/exec" --bridge "$bridge" >"$dir/log" 2>&1 </dev/null &
    local pid=$!
    for _ in $(seq 150); do
        docker version >/dev/null 2>&1 && return
        if ! kill -0 "$pid" 2>/dev/null; then
            tail -n 3 "$dir/log" >&2
            stop "$dir"
            fail "dockerd does not start here"
        fi
        sleep 0.2
    done
    stop "$dir"
    fail "dockerd does not answer"
}

make_base() {
    local dir="$1" root="$1/root"
    {
        debootstrap --variant=minbase --include=python3 "$SUITE" "$root" &&
            python3_pip install --quiet --only-binary=:all: --python-version "$SUITE_PYTHON" \
                --target "$root/usr/local/lib/python$SUITE_PYTHON/dist-packages" \
                pip -r "$ROOT/templates/python3-wrap/requirements.txt" \
                -r "$ROOT/templates/plain/requirements.txt" &&
            rm -f "$root/usr/lib/python$SUITE_PYTHON/EXTERNALLY-MANAGED" &&
            ln -s python3 "$root/usr/bin/python" &&
            tar -C "$root" -c . | docker import - "$BASE_IMAGE"
    } >"$dir/base.log" 2>&1 || return
    rm -rf "$root"
}

python3_pip() {
    local python="$ROOT/.venv/bin/python"
    [ -x "$python" ] || python=python3
    "$python" -m pip --disable-pip-version-check "$@"
}

stop() {
    local dir="$1" pid
    if pid="$(cat "$dir/pid" 2>/dev/null)" && kill "$pid" 2>/dev/null; then
        for _ in $(seq 150); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.2
        done
    fi
    if [ -e "$dir/bridge" ]; then
        ip link delete "$(cat "$dir/bridge")" || true
    fi
    rm -rf --one-file-system "$dir"
}

case "${1:-}:${2:-}" in
    start:?*) start "$2" ;;
    stop:?*) stop "$2" ;;
    *) fail "usage: $0 start|stop DIR" ;;
esac
