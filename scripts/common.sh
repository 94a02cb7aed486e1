# shellcheck shell=bash
# Shared by scripts/setup, build, run and test. Sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/build/deps
export root deps

# Standard output belongs to ckplan alone, so the scripts' own messages go to standard error.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# show_failure LOG WHAT: prints the end of the log and the path of the whole log, and ends.
show_failure() {
  tail -n 60 "$1" >&2
  fail "failed: $2 (all of the output: $1)"
}

# quietly LOG COMMAND...: runs the command, and shows its output only if it fails.
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

# Uses ccache where it is installed.
launcher() {
  if command -v ccache >/dev/null; then
    echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  fi
}

# with_preset PRESET COMMAND...: runs a program of this build. GCC 12's thread sanitizer cannot start
# where the kernel randomizes addresses over as many bits as today's kernels do; so randomization is
# turned off, where that is allowed.
with_preset() {
  local wrap=()
  if [[ $1 == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then wrap=(setarch "$(uname -m)" -R); fi
  "${wrap[@]}" "${@:2}"
}
