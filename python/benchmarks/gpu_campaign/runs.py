"""Runs the cases of a campaign (cases.py). A method returns the result of a case, or raises Failure
with the reasons, which the journal keeps."""

import glob
import json
import os
import re
import shutil
import time
import traceback

from . import cases as campaign
from .machine import (Failure, Interrupted, KEPT_LINES, REHEARSED_TESTS, TESTS, TimeIsUp,
                      facts_of_driver, find_sanitizer, status_of)

HERE = os.path.dirname(os.path.abspath(__file__))


def file_name(case):
    """Returns a name for files of the case."""
    return "".join(letter if letter.isalnum() or letter in "-_=." else "_" for letter in case)


class Runner:
    def __init__(self, machine, journal, folder, runs):
        self.machine = machine
        self.journal = journal
        self.files = os.path.join(folder, "files")
        self.runs = runs
        os.makedirs(self.files, exist_ok=True)

    def run(self, case):
        """Runs a case, and returns its result even if it fails."""
        began = time.monotonic()
        try:
            result = {"status": "passed", **getattr(self, case.kind)(case)}
        except Failure as failure:
            result = {"status": failure.status, "reasons": failure.reasons,
                      "exit_code": failure.exit_code, "command": self.machine.command}
        except (TimeIsUp, Interrupted):
            raise
        except Exception:  # A fault of this program also costs one line, and the next case runs.
            result = {"status": "failed", "reasons": traceback.format_exc().splitlines()[::-1],
                      "command": self.machine.command}
        return {"stage": case.stage, "model": case.model, "sizes": list(case.sizes),
                "precision": case.precision, "seconds": round(time.monotonic() - began, 3),
                "details": {key: value for key, value in case.details.items()
                            if key not in ("planning", "profile")}, **result}

    def path(self, case_name, ending):
        return os.path.join(self.files, f"{file_name(case_name)}.{ending}")

    # ---- The machine ---------------------------------------------------------------------------

    def probe(self, case):
        machine = self.machine
        model, sizes = machine.network_of(case)
        output = machine.call([machine.program("ckexec"), "profile", model, *sizes,
                               *machine.backend(), "--runs", "1", "-q", "-o", "-"])
        report = json.loads(output)
        return {"backend": report["backend"], "driver": facts_of_driver(machine),
                "rehearsed": machine.rehearses}

    # ---- Plans ---------------------------------------------------------------------------------

    def profile(self, case):
        machine = self.machine
        model, sizes = machine.network_of(case)
        costs = self.path(case.name, "costs.json")
        machine.call([machine.program("ckexec"), "profile", model, *sizes, *machine.backend(),
                      *self.precision(case), "--runs", str(self.runs), "-q", "-o", costs])
        return {"files": [costs]}

    def plan(self, case):
        costs = self.costs_of(case.details["profile"])
        budget = case.details.get("budget")
        if self.machine.rehearses:
            budget = case.details.get("rehearsed_budget", budget)
        planned, budget = self.make_plan(case, costs, case.details["planning"], budget)
        try:
            report, reasons = self.validate(case, planned, costs)
        finally:
            os.remove(planned)
        status = "passed" if report["ok"] and not report["gradients"]["differing"] else "failed"
        return {"status": status, "report": report, "budget": budget, "reasons": reasons}

    def costs_of(self, profile):
        result = self.journal.results.get(profile)
        path = self.path(profile, "costs.json")
        if result is not None and result["status"] != "passed":
            raise Failure(result["status"],
                          [f"its costs were not measured: {result['reasons'][0]}"])
        if result is None:
            raise Failure("failed", ["its costs were not measured"])
        if not os.path.exists(path):  # The journal came back from a machine, and the file did not.
            self.profile(campaign.Case(profile, result["stage"], "profile", result["model"],
                                       tuple(result["sizes"]), result["precision"]))
        return f"file:{path}"

    def make_plan(self, case, costs, planning, budget):
        """Returns the model with its plan, and the budget that the plan has: none if there is no
        plan within the one that was asked for."""
        machine = self.machine
        model, sizes = machine.network_of(case)
        plan = self.path(case.name, "plan.json")
        command = [machine.program("ckplan"), model, *sizes, *planning, "--cost", costs, "--align",
                   "256", *(["--activation-type", "bf16"] if case.precision == "bf16" else []),
                   "-q", "-o", plan]
        if budget is not None:
            try:
                machine.call([*command, "--budget", budget])
            except Failure as failure:
                if failure.exit_code != 4:
                    raise
                budget = None
        if budget is None:
            machine.call(command)
        planned = self.path(case.name, "planned.onnx")
        machine.call([machine.program("ckplan"), "apply", plan, model, "--cost", costs, "-q", "-o",
                      planned])
        return planned, budget

    def validate(self, case, planned, costs):
        """Returns the report, and the reasons if the plan is not proven."""
        machine = self.machine
        code, output, messages = machine.run(
            [machine.program("ckexec"), "validate", planned, "--cost", costs, *machine.backend(),
             *[part for part in self.precision(case) if part != "--bf16"], "--format", "json",
             "--runs", str(self.runs), *case.details.get("validating", [])])
        if code not in (0, 6) or not output:
            raise Failure(status_of(code), messages[-KEPT_LINES:], code)
        return json.loads(output), [] if code == 0 else messages[-KEPT_LINES:]

    def precision(self, case):
        return campaign.PRECISIONS[case.precision]

    # ---- Tests ---------------------------------------------------------------------------------

    def tests(self, case):
        """Runs a test program. If it ends before its last test case, runs each of them alone, so
        that one which ends the program costs one line."""
        program = self.machine.program(case.name)
        only = [TESTS[case.name]]
        if self.machine.rehearses:
            only.append(f"--test-case={REHEARSED_TESTS[case.name]}")
        code, output, messages = self.machine.run([program, *only])
        self.keep_output(case, output, messages)
        if code == 77:
            raise Failure("refused", messages, code)
        if code in (0, 1):
            return self.result_of_tests(code, output, messages)
        alone = [self.run_test_alone(program, name) for name in self.names_of_tests(program, only)]
        return {"status": "failed", "exit_code": code, "alone": alone,
                "reasons": [f"the program ended with {code} before its last test case",
                            *(output.splitlines() + messages)[-KEPT_LINES:]]}

    @staticmethod
    def result_of_tests(code, output, messages):
        lines = output.splitlines()
        summary = [line for line in lines if "test cases:" in line or "assertions:" in line]
        if any(re.search(r"test cases: +0 ", line) for line in summary):
            raise Failure("failed", ["the program has none of these test cases", *lines], code)
        return {"status": "passed" if code == 0 else "failed", "exit_code": code,
                "summary": summary,
                "reasons": [] if code == 0 else (lines + messages)[-KEPT_LINES:]}

    def names_of_tests(self, program, only):
        output = self.machine.call([program, "--list-test-cases", "--no-intro", *only])
        return [line for line in output.splitlines() if line and not line.startswith(("[", "="))]

    def run_test_alone(self, program, name):
        pattern = name.replace("\\", "\\\\").replace(",", "\\,")
        code, output, messages = self.machine.run([program, f"--test-case={pattern}"])
        lines = [] if code == 0 else (output.splitlines() + messages)[-20:]
        return {"name": name, "exit_code": code, "reasons": lines}

    # ---- PyTorch -------------------------------------------------------------------------------

    def pytorch(self, case):
        environment = {"CKPLAN_PROGRAM": self.machine.program("ckplan"),
                       "CKPLAN_CACHE": os.path.join(self.files, "plans"),
                       "PYTHONPATH": os.path.join(self.machine.root, "python")}
        command = [self.machine.python, os.path.join(HERE, "pytorch_side.py"), "--network",
                   case.model, "--batch", str(case.details["batch"]), "--precision",
                   case.precision, "--way", case.details["way"], "--steps", str(self.runs + 2)]
        if self.machine.rehearses:
            command.append("--rehearse")
        code, output, messages = self.machine.run(command, environment=environment)
        if code == 77:
            raise Failure("skipped", messages[-KEPT_LINES:], code)
        if code != 0:
            raise Failure("refused" if code == 4 else "failed", messages[-KEPT_LINES:], code)
        return {"pytorch": json.loads(output.splitlines()[-1])}

    # ---- compute-sanitizer ---------------------------------------------------------------------

    def sanitize(self, case):
        tool = find_sanitizer()
        if self.machine.rehearses:
            raise Failure("skipped", ["compute-sanitizer needs a GPU"])
        if not os.path.exists(tool):
            raise Failure("skipped", ["compute-sanitizer is not installed; it comes with the CUDA "
                                      "toolkit"])
        kind = case.details["tool"]
        wrap = [tool, "--tool", kind, *campaign.SANITIZERS[kind], "--error-exitcode", "9"]
        if not case.model:
            return self.sanitized(case, [*wrap, self.machine.program("operators"),
                                         TESTS["operators"]])
        costs = f"file:{self.profile(case)['files'][0]}"
        planned, _ = self.make_plan(case, costs, ["--algo", "approx-dp"], "60%")
        return self.sanitized(case, [*wrap, self.machine.program("ckexec"), "validate", planned,
                                     "--cost", costs, *self.machine.backend(), "--runs", "0", "-q"])

    def sanitized(self, case, command):
        code, output, messages = self.machine.run(command)
        self.keep_output(case, output, messages)
        lines = output.splitlines() + messages
        summary = [line for line in lines if "test cases:" in line or "SUMMARY" in line]
        return {"status": "passed" if code == 0 else "failed", "exit_code": code,
                "summary": summary, "reasons": [] if code == 0 else lines[-KEPT_LINES:]}

    def keep_output(self, case, output, messages):
        """Writes the whole output of a program; the journal has only the end."""
        with open(self.path(case.name, "output.txt"), "w", encoding="utf-8") as file:
            file.write(output + "\n".join(messages))

    def remove_unfinished(self, case):
        """Removes files of an interrupted case."""
        for ending in ("costs.json", "plan.json", "planned.onnx"):
            # A program that is killed while it writes leaves the file under a longer name.
            for path in glob.glob(glob.escape(self.path(case.name, ending)) + "*"):
                os.remove(path)


def python_with_torch(wanted):
    return wanted or shutil.which("python3") or "python3"
