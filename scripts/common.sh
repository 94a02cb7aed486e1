# shellcheck shell=bash
# What scripts/setup, build, run and test share. Sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/build/deps
export root deps

# Standard output belongs to ckplan alone, so everything these scripts say goes to standard error.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# show_failure LOG WHAT: the end of the log, and where the rest of it lies.
show_failure() {
  tail -n 60 "$1" >&2
  fail "failed: $2 (all of the output: $1)"
}

# quietly LOG COMMAND...: shows nothing of a command that works.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null || show_failure "$log" "$*"
}

# Two first runs at once must not install or build over each other. Held until this process ends;
# the scripts that take it run as children, so that ckplan itself never holds it.
lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock-$1"
  flock 9
}

# ccache, where it happens to be there.
launcher() {
  if command -v ccache >/dev/null; then
    echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  fi
}
