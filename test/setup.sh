#!/bin/sh
# Names every missing prerequisite with how to get it, then installs the pinned npm packages (Node 22 among them).
set -eu
cd "$(dirname "$0")/.."

missing=0
need() { # what is needed, how to get it
  printf 'missing: %s\n         %s\n' "$1" "$2" >&2
  missing=1
}

if ! command -v node >/dev/null 2>&1; then
  need "Node.js 20 or newer" "install it from your distribution or from the Node.js project; Node 22 itself comes with the npm packages"
elif [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  need "Node.js 20 or newer (found $(node --version))" "upgrade it; Node 22 itself comes with the npm packages"
fi
command -v npm >/dev/null 2>&1 || need "npm" "it comes with Node.js; some distributions package it apart as 'npm'"

if ! command -v go >/dev/null 2>&1; then
  need "Go 1.26 or newer" "install it from your distribution or from the Go project; it builds the test bed's control plane"
elif ! go env GOVERSION | awk -F'[go.]+' '{ exit !($2 > 1 || ($2 == 1 && $3 >= 26)) }'; then
  need "Go 1.26 or newer (found $(go env GOVERSION))" "upgrade it; it builds the test bed's control plane"
fi

if ! command -v python3 >/dev/null 2>&1; then
  need "Python 3.9 or newer" "install it from your distribution; the Redfish emulator runs on it"
elif ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; then
  need "Python 3.9 or newer with the venv module (found $(python3 --version 2>&1))" "on Debian and Ubuntu: apt-get install python3-venv"
fi

[ "$missing" -eq 0 ] || exit 1

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "setup: installing npm packages"
  npm ci --loglevel=error
fi
