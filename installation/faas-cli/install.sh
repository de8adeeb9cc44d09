#!/bin/sh
# Builds the faas-cli that go.mod pins into PREFIX/bin/faas-cli: install.sh PREFIX
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 PREFIX (the binary goes to PREFIX/bin/faas-cli)" >&2
    exit 2
fi
if ! command -v go >/dev/null 2>&1; then
    echo "faas-cli needs Go 1.24 or newer to be built: install it (https://go.dev/doc/install)" \
        "or put any faas-cli on PATH" >&2
    exit 1
fi

mkdir -p "$1/bin"
target=$(cd "$1/bin" && pwd)/faas-cli
cd "$(dirname "$0")"
module=github.com/openfaas/faas-cli
version=$(sed -n "s|.*$module \(v[^ ]*\).*|\1|p" go.mod)

# Built beside the target and renamed, so that an interrupted build leaves no half binary.
trap 'rm -f "$target.$$"' EXIT
CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false \
    -ldflags "-s -w -X $module/version.Version=$version -X $module/version.GitCommit=${version##*-}" \
    -o "$target.$$" "$module"
mv "$target.$$" "$target"
echo "$target $version"
