"""Finds and runs the programs of a campaign, in a rehearsal over an emulated GPU."""

import ctypes
import os
import shutil
import signal
import subprocess
import time

# Where each program is in a build folder. A bundle has them all in bin.
PROGRAMS = {
    "ckplan": ["cli/ckplan/ckplan"],
    "ckexec": ["cli/ckexec/ckexec"],
    "operators": ["lib/executor/cuda/gpu/ckplan_cuda_test"],
    "executor": ["lib/executor/cuda/gpu/ckplan_cuda_test"],
}
# Which test cases of a program are those of the operators or of the executor.
TESTS = {"operators": "--source-file-exclude=*lib/executor/core/*", "executor": "--source-file=*lib/executor/core/*"}
# In a rehearsal, the same programs run over a GPU that the host emulates.
REHEARSED = {
    "ckplan": PROGRAMS["ckplan"],
    "ckexec": ["cli/ckexec/ckexec_emulated"],
    "operators": ["lib/executor/cuda/testing/host/ckplan_cuda_on_host_test"],
    "executor": ["lib/executor/cuda/testing/host/ckplan_exec_on_cuda_host_test"],
}
# What a rehearsal takes of the test programs, which emulate thousands of threads.
REHEARSED_TESTS = {"operators": "cuda: Rotary*", "executor": "loss: the axis*"}
# The network that takes the place of all others in a rehearsal.
STAND_IN = ("tiny_mlp", ("-D", "N=8"))

# What TF32 convolutions of ResNet-50 need at N=256, so that none is restricted.
WORKSPACE = "1200MiB"
CASE_SECONDS = 1200  # No case takes this long unless something hangs.
LEASE_CASE_SECONDS = 45  # The same in a lease, where a hang must not cost the other cases.
KEPT_LINES = 200


class TimeIsUp(Exception):
    """The time limit of the campaign has passed."""


class Interrupted(Exception):
    """A signal stopped the campaign."""


class Failure(Exception):
    """A command failed, or printed something unexpected."""

    def __init__(self, status, reasons, exit_code=None):
        super().__init__(reasons[0] if reasons else status)
        self.status = status
        self.reasons = reasons
        self.exit_code = exit_code


def end_with_parent():
    """Runs in a child: it is killed when the campaign is, so that it writes nothing afterwards."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def status_of(exit_code):
    """Returns what a result is called: exit codes of ckplan and ckexec that say that the machine or
    the network is at fault are not failures of a plan."""
    return {0: "passed", 3: "refused", 4: "refused"}.get(exit_code, "failed")


class Machine:
    def __init__(self, root, build, rehearses, python, deadline):
        self.root = root
        self.build = build
        self.rehearses = rehearses
        self.python = python
        self.deadline = deadline
        self.case_seconds = CASE_SECONDS
        self.case_ends = None  # When the case that runs has had its time.
        self.command = []  # The last one, for the journal.
        self.is_waiting = False
        self.is_stopped = False

    def program(self, name):
        paths = (REHEARSED if self.rehearses else PROGRAMS)[name]
        for path in [*paths, f"bin/{os.path.basename(paths[0])}"]:
            whole = os.path.join(self.build, path)
            if os.access(whole, os.X_OK):
                return whole
        raise Failure("missing", [f"there is no {paths[0]} in {self.build}; build it, or name "
                                  "another folder with --build"])

    def model(self, name):
        return os.path.join(self.root, "testdata/models", f"{name}.onnx")

    def network_of(self, case):
        """Returns the model and the sizes that the case runs here."""
        name, sizes = STAND_IN if self.rehearses else (case.model, case.sizes)
        return self.model(name), list(sizes)

    def backend(self, timed=True):
        limit = "16KiB" if self.rehearses else WORKSPACE
        return ["--backend", "cuda", *(["--workspace-limit", limit] if timed else [])]

    def stop(self, _signal, _frame):
        """Handles a signal: at once while a command runs, else before the next one, so that no line
        of the journal is cut."""
        self.is_stopped = True
        if self.is_waiting:
            raise Interrupted()

    def begin_case(self, seconds):
        """Starts the clock of the next case. Raises TimeIsUp if the campaign has no time left."""
        self.case_ends, self.case_seconds = None, seconds
        self.seconds_left()
        self.case_ends = time.monotonic() + seconds

    def has_time_for(self, seconds):
        """Returns whether the campaign has this many seconds left."""
        return self.deadline is None or time.monotonic() + seconds <= self.deadline

    def has_hung(self):
        """Returns whether the running case has used up its time."""
        return self.case_ends is not None and time.monotonic() >= self.case_ends

    def seconds_left(self):
        if self.is_stopped:
            raise Interrupted()
        now = time.monotonic()
        if self.deadline is not None and self.deadline <= now:
            raise TimeIsUp()
        ends = now + self.case_seconds if self.case_ends is None else self.case_ends
        if ends <= now:
            raise self.took_too_long()
        return min(ends, self.deadline or ends) - now

    def took_too_long(self):
        return Failure("failed", [f"it took longer than {self.case_seconds} s"])

    def run(self, command, folder=None, environment=None):
        """Runs the command, and returns its exit code, its output and its messages as lines."""
        self.command = [str(part) for part in command]
        left = self.seconds_left()
        try:
            child = subprocess.Popen(self.command, cwd=folder or self.root, text=True,
                                     errors="replace", stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env={**os.environ, **(environment or {})},
                                     preexec_fn=end_with_parent)
        except OSError as error:
            raise Failure("missing", [f"{self.command[0]}: {error.strerror}"]) from error
        output, messages = self.wait_for(child, left)
        return child.returncode, output, messages.splitlines()

    def wait_for(self, child, left):
        try:
            self.is_waiting = True
            return child.communicate(timeout=left)
        except subprocess.TimeoutExpired as error:
            if not self.has_hung():
                raise TimeIsUp() from error
            raise self.took_too_long() from error
        finally:
            self.is_waiting = False
            if child.poll() is None:
                child.kill()
                child.communicate()

    def call(self, command):
        """Runs the command, which must succeed, and returns its output."""
        code, output, messages = self.run(command)
        if code != 0:
            raise Failure(status_of(code), (messages or output.splitlines())[-KEPT_LINES:], code)
        return output


def find_sanitizer():
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def facts_of_driver(machine):
    """Returns what nvidia-smi says about the GPU, if there is one."""
    names = ["name", "driver_version", "memory.total", "clocks.max.sm", "power.limit"]
    if machine.rehearses or not shutil.which("nvidia-smi"):
        return {}
    code, output, _ = machine.run(["nvidia-smi", f"--query-gpu={','.join(names)}",
                                   "--format=csv,noheader"])
    if code != 0 or not output.strip():
        return {}
    return dict(zip(names, (part.strip() for part in output.splitlines()[0].split(","))))
