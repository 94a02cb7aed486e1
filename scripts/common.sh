# shellcheck shell=bash
# What the scripts share: --help, which each answers with the comment at its top, and functions. This file is
# sourced, before a script does anything, and never run.
set -euo pipefail

case ${1:-} in
  --help | -h)
    sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0"
    exit
    ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/build/deps
export root deps

# Standard output is reserved for ckplan, so the scripts' own messages go to standard error.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# show_failure LOG WHAT: prints the end of the log and the path of the whole log, and exits.
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

# Prevents two simultaneous first runs from installing or building over each other. The lock is held until
# this process ends. Scripts that take it run as children, so that ckplan itself never holds it.
lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock-$1"
  flock 9
}

# Prints the CMake option for ccache if ccache is installed.
launcher() {
  if command -v ccache >/dev/null; then
    echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  fi
}

# with_preset PRESET COMMAND...: runs a program of this build. GCC 12's thread sanitizer cannot start if the
# kernel randomizes as many address bits as current kernels do, so randomization is turned off if that is
# allowed.
with_preset() {
  local wrap=()
  if [[ $1 == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then wrap=(setarch "$(uname -m)" -R); fi
  "${wrap[@]}" "${@:2}"
}
