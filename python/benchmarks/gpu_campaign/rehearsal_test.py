#!/usr/bin/env python3
"""Rehearses scripts/test-gpu over an emulated GPU, and cuts it in all ways.

  python/benchmarks/gpu_campaign/rehearsal_test.py BUILD [TEST...]

BUILD has ckplan, ckexec, ckexec_emulated, ckplan_cuda_on_host_test and ckplan_exec_on_cuda_host_test.
"""

import html
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(BENCHMARKS))
sys.path.insert(0, BENCHMARKS)

from gpu_campaign import cases, lease, machine  # noqa: E402
from gpu_campaign.journal import FILE, MAX_LEASED_STARTS, MAX_STARTS, Journal, read_lines  # noqa: E402
from gpu_campaign.journal import read_records, results_of  # noqa: E402

BUILD = ""
# All kinds of case, but few of each: what the tests that cut a campaign run several times.
FEW = ["--stages", "probe,small,operators,executor,table", "--models", "resnet50,squeezenet1_1"]
FEW_STAGES, FEW_MODELS = FEW[1].split(","), FEW[3].split(",")

# Takes the place of a python3 that has PyTorch, which python/benchmarks/gpu_campaign/pytorch_side.py needs.
PYTHON = """#!/bin/sh
echo '{"torch": "0", "seconds": 0.001, "peak_bytes": 1048576}'
"""


# A test program of two test cases, the second of which ends it.
DYING = r"""#!/bin/sh
case "$*" in
*--list-test-cases*) echo 'one'; echo 'a, two'; exit 0 ;;
--test-case=one) exit 0 ;;
'--test-case=a\, two') echo 'it broke' >&2 ;;
esac
exit 70
"""


class Folder:
    """A folder for one campaign."""

    def __init__(self, test, build=None):
        self.path = tempfile.mkdtemp(prefix="ckplan_campaign_")
        test.addCleanup(lambda: subprocess.run(["rm", "-r", self.path], check=True))
        self.build = build or BUILD
        self.python = os.path.join(self.path, "python3")
        write_program(self.python, PYTHON)

    def command(self, *options, rehearses=True):
        return [os.path.join(ROOT, "scripts/test-gpu"), "-o", self.path, "--build", self.build,
                "--python", self.python, "--runs", "1", *(["--rehearse"] if rehearses else []),
                *options]

    def run(self, *options, rehearses=True, fault=None):
        environment = {**os.environ, **({"CKEXEC_EMULATED_FAULT": fault} if fault else {})}
        return subprocess.run(self.command(*options, rehearses=rehearses), env=environment,
                              capture_output=True, text=True, check=False)

    def start(self, *options):
        with open(self.screen(), "w", encoding="utf-8") as file:
            return subprocess.Popen(self.command(*options), stdout=file,
                                    stderr=subprocess.DEVNULL)

    def screen(self):
        return os.path.join(self.path, "screen.txt")

    def announced(self):
        """Returns the cases whose results the last campaign has shown."""
        with open(self.screen(), encoding="utf-8") as file:
            return re.findall(r"^ *\d+/\d+ +passed +(.*)  \(\d", file.read(), re.MULTILINE)

    def journal(self):
        return os.path.join(self.path, FILE)

    def lines(self):
        return read_lines(self.journal())[0]

    def results(self):
        return results_of(read_records(self.journal()))

    def count(self, event):
        return sum(record["event"] == event for record in read_records(self.journal()))

    def page(self, ending):
        path = os.path.join(self.path, f"gpu-validation.{ending}")
        with open(path, encoding="utf-8") as file:
            return file.read()

    def file_names(self):
        return os.listdir(os.path.join(self.path, "files"))


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def few_cases():
    return [case.name for case in cases.all_cases(FEW_STAGES, FEW_MODELS)]


class Rehearsal(unittest.TestCase):
    maxDiff = None

    def check_done(self, folder, names):
        results = folder.results()
        self.assertEqual(list(results), names)
        self.assertEqual({result["status"] for result in results.values()}, {"passed"})
        self.assertEqual(folder.count("result"), len(names))
        self.assertEqual([name for name in folder.file_names() if "planned" in name], [])

    def check_values_move(self, results):
        """The greedy rule always moves values; best recomputes where that costs less."""
        moving = [result for case, result in results.items()
                  if case.endswith("/offload-largest, copies")]
        self.assertEqual(len(moving), 6)
        for result in moving:
            plan = result["report"]["plan"]
            self.assertGreater(plan["host"]["peak_bytes"], 0)
            self.assertEqual(plan["host"]["peak_bytes"], plan["host"]["predicted_peak_bytes"])
            self.assertLess(plan["counted_peak"]["total_bytes"],
                            result["report"]["keep_all"]["counted_peak"]["total_bytes"])

    def check_comparisons(self, results):
        """Each time has a prediction for the same program, and each peak the driver's own count."""
        reports = {case: result["report"] for case, result in results.items() if "report" in result}
        self.assertGreater(len(reports), 50)
        for case, report in reports.items():
            recorded = results[case]["details"].get("validating") == ["--graph"]
            self.assertEqual(report["timing"], "graphs" if recorded else "steps", case)
            for run in ("keep_all", "plan"):
                for figure in ("seconds", "operator_seconds", "predicted_seconds",
                               "driver_peak_bytes"):
                    self.assertGreater(report[run][figure], 0, f"{case}: {run}: {figure}")
            self.assertLessEqual(report["plan"]["driver_peak_bytes"],
                                 report["keep_all"]["driver_peak_bytes"], case)

    def test_everything_runs_in_order_and_is_on_the_pages(self):
        folder = Folder(self)
        done = folder.run()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        stages = [name for name in cases.STAGES if name != "sanitizer"]
        planned = cases.all_cases(stages, [])
        self.check_done(folder, [case.name for case in planned])
        self.assertEqual([case.stage for case in planned],
                         sorted((case.stage for case in planned), key=stages.index))
        for ending in ("md", "html"):
            text = folder.page(ending)
            for part in ("A rehearsal", "Checks", "Networks, keeping all", "Kusumoto, Table 1",
                         "Hong, Table 2", "Chen, Fig. 7", "Feng, Table 1", "PyTorch 0, knob",
                         "N=8 fused", "Values on the host"):
                self.assertIn(part, text)
            self.assertIn("Steps take", text)
            self.assertIn("the driver's count is independent of it", html.unescape(text))
        self.assertEqual(text.count("<svg"), 5)
        self.check_values_move(folder.results())
        self.check_comparisons(folder.results())
        # Another campaign with other settings is refused, and changes nothing.
        before = folder.lines()
        self.assertEqual(folder.run(rehearses=False).returncode, 2)
        self.assertEqual(folder.lines(), before)

    def test_killed_at_random_moments_it_loses_nothing(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        moments = random.Random(seed)
        folder = Folder(self)
        for _ in range(5):
            child = folder.start(*FEW)
            # One case passes between two kills, so that none is cut more often than it may be.
            while not folder.announced() and child.poll() is None:
                time.sleep(0.01)
            time.sleep(moments.uniform(0, 0.25))
            self.assertIsNone(child.poll(), "it was done before it could be killed")
            child.send_signal(signal.SIGKILL)
            child.wait()
            before = folder.lines()
            self.assertNotEqual(folder.announced(), [])
            self.assertEqual(set(folder.announced()) - set(folder.results()), set())
            done = folder.run(*FEW, "--time-limit", "0.001s")
            self.assertIn(done.returncode, (0, 75))
            self.assertEqual(folder.lines()[:len(before)], before)
        done = folder.run(*FEW)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_done(folder, few_cases())

    def test_a_part_of_a_line_is_dropped_and_the_case_runs_again(self):
        folder = Folder(self)
        self.assertEqual(folder.run("--stages", "probe,small").returncode, 0)
        lines = folder.lines()
        with open(folder.journal(), "wb") as file:
            file.write(b"\n".join(lines[:-1]) + b"\n" + lines[-1][:40])
        self.assertEqual(folder.run("--stages", "probe,small").returncode, 0)
        self.assertEqual(folder.lines()[:len(lines) - 1], lines[:-1])
        self.assertEqual(len(read_records(folder.journal())), len(folder.lines()))
        self.assertEqual(list(folder.results()),
                         [case.name for case in cases.all_cases(["probe", "small"], [])])

    def test_a_time_limit_cuts_it_and_the_next_call_goes_on(self):
        folder = Folder(self)
        calls = 0
        while (done := folder.run(*FEW, "--time-limit", "1.5s")).returncode == 75:
            self.assertIn("the same command goes on with", done.stdout)
            calls += 1
            self.assertLess(calls, 500)
        self.assertGreater(calls, 0)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_done(folder, few_cases())

    def test_what_a_killed_case_was_writing_is_removed(self):
        folder = Folder(self)
        self.assertEqual(folder.run("--stages", "probe").returncode, 0)
        with open(folder.journal(), "ab") as file:
            file.write(b'{"event": "start", "case": "operators"}\n')
        for left in ("operators.planned.onnx", "operators.planned.onnx.aB3dE6"):
            with open(os.path.join(folder.path, "files", left), "w", encoding="utf-8"):
                pass
        self.assertEqual(folder.run("--stages", "operators").returncode, 0)
        self.assertEqual([name for name in folder.file_names() if "planned" in name], [])

    def test_a_case_that_ends_the_campaign_again_and_again_is_given_up(self):
        folder = Folder(self)
        self.assertEqual(folder.run("--stages", "probe").returncode, 0)
        with open(folder.journal(), "ab") as file:
            for _ in range(MAX_STARTS):
                file.write(b'{"event": "start", "case": "operators"}\n')
        done = folder.run("--stages", "probe,operators,executor")
        self.assertEqual(done.returncode, 1)
        results = folder.results()
        self.assertEqual(results["operators"]["status"], "failed")
        self.assertEqual(results["executor"]["status"], "passed")
        self.assertEqual(folder.run("--stages", "probe,operators", "--retry").returncode, 0)

    def test_a_plan_that_is_not_proven_costs_its_line_with_all_reasons(self):
        folder = Folder(self)
        done = folder.run("--stages", "probe,small,executor",
                          fault="a product is not the same twice")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        results = folder.results()
        failed = [result for result in results.values() if result["status"] == "failed"]
        self.assertEqual(len(failed), 1)
        self.assertFalse(failed[0]["report"]["ok"])
        reasons = "\n".join(failed[0]["reasons"])
        self.assertIn("the plan is not proven", reasons)
        self.assertIn("keeping everything", reasons)
        self.assertEqual(results["executor"]["status"], "passed")

    def test_costs_that_were_not_measured_are_the_reason_of_all_that_need_them(self):
        folder = Folder(self)
        self.assertEqual(folder.run("--stages", "probe").returncode, 0)
        done = folder.run("--stages", "small", fault="a leading dimension is too small")
        self.assertEqual(done.returncode, 1)
        profile, plan = list(folder.results().values())[-2:]
        self.assertEqual((profile["exit_code"], plan["status"]), (70, "failed"))
        self.assertIn("a leading dimension covers the rows", "\n".join(profile["reasons"]))
        self.assertIn("its costs were not measured", plan["reasons"][0])

    def test_a_test_program_that_dies_runs_its_test_cases_alone(self):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(os.path.join(build, "bin"))
            for name, paths in machine.REHEARSED.items():
                target = os.path.join(build, "bin", os.path.basename(paths[0]))
                if name != "operators":
                    os.symlink(os.path.join(BUILD, paths[0]), target)
                    continue
                write_program(target, DYING)
            folder = Folder(self, build)
            done = folder.run("--stages", "probe,operators,executor")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            results = folder.results()
            alone = results["operators"]["alone"]
            self.assertEqual([(each["name"], each["exit_code"]) for each in alone],
                             [("one", 0), ("a, two", 70)])
            self.assertEqual(alone[1]["reasons"], ["it broke"])
            self.assertIn("operators.output.txt", folder.file_names())
            self.assertEqual(results["executor"]["status"], "passed")

    def test_without_programs_or_a_gpu_it_says_so_and_runs_nothing(self):
        with tempfile.TemporaryDirectory() as build:
            done = Folder(self, build).run("--stages", "probe,small")
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is no cli/ckexec/ckexec_emulated in", done.stderr)
        folder = Folder(self)
        done = folder.run(rehearses=False)
        if done.returncode != 77:
            self.skipTest("this machine has a GPU")
        self.assertIn("SKIPPED: nothing else was run: ckexec: the cuda backend cannot run here",
                      done.stderr)
        self.assertEqual(list(folder.results()), ["probe"])

    def test_two_campaigns_in_one_folder_are_refused(self):
        folder = Folder(self)
        child = folder.start("--stages", "probe,small,table")
        while not os.path.exists(folder.journal()) or not folder.lines():
            time.sleep(0.01)
        done = folder.run("--stages", "probe")
        child.terminate()
        self.assertEqual(child.wait(), 75)
        self.assertEqual(done.returncode, 2)
        self.assertIn("another campaign writes into", done.stderr)

    def test_pages_are_made_of_the_lines_alone(self):
        folder = Folder(self)
        self.assertEqual(folder.run("--stages", "probe,small").returncode, 0)
        text = folder.page("html")
        os.remove(os.path.join(folder.path, "gpu-validation.html"))
        page = [os.path.join(ROOT, "scripts/test-gpu"), "page"]
        self.assertEqual(subprocess.run([*page, folder.path], check=False,
                                        stdout=subprocess.DEVNULL).returncode, 0)
        self.assertEqual(folder.page("html"), text)
        self.assertEqual(subprocess.run([*page, ROOT], check=False,
                                        stderr=subprocess.DEVNULL).returncode, 2)


# Takes the place of a program that never answers.
HANGING = """#!/bin/sh
exec sleep 600
"""


class Lease(unittest.TestCase):
    """A campaign on a machine that is lent for a few minutes."""

    def setUp(self):
        self.folder = Folder(self)
        self.work = os.path.join(self.folder.path, "work")
        self.out = os.path.join(self.folder.path, "out")

    def command(self, *options):
        return [os.path.join(ROOT, "scripts/test-gpu"), "--rehearse", "--lease", "10", "--runs", "1",
                "-o", self.out, "--work", self.work, "--build", self.folder.build, "--python",
                self.folder.python, *options]

    def run_lease(self, *options):
        return subprocess.run(self.command(*options), capture_output=True, text=True, check=False)

    def results(self):
        return results_of(read_records(os.path.join(self.work, FILE)))

    def test_it_runs_its_cases_in_order_and_hands_back_three_files(self):
        done = self.run_lease()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = self.results()
        self.assertEqual(list(results), [case.name for case in cases.lease_cases()])
        self.assertEqual({case: result["status"] for case, result in results.items()
                          if result["status"] != "passed"},
                         {"sanitizer/memcheck/resnet50": "skipped"})
        self.assertEqual(sorted(os.listdir(self.out)),
                         ["campaign.tar.gz", "gpu-validation.md", FILE])
        for name in os.listdir(self.out):
            self.assertLess(os.path.getsize(os.path.join(self.out, name)), 16 * 2**20)
        for case in cases.lease_cases():
            limit = cases.limit_seconds(case, machine.LEASE_CASE_SECONDS)
            self.assertLess(results[case.name]["seconds"], limit)
            self.assertLessEqual(cases.expected_seconds(case), limit)

    def test_a_result_that_the_page_cannot_show_and_a_bad_archive_lose_nothing(self):
        os.makedirs(self.work)
        odd = {"event": "result", "case": "small/odd", "stage": "small", "status": "passed",
               "seconds": 1, "model": "odd", "sizes": [], "precision": "fp32", "report": {}}
        lines = [json.dumps({"event": "campaign", "settings": {}}), json.dumps(odd)]
        with open(os.path.join(self.work, FILE), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        lease.hand_back(self.work, self.out)
        self.assertEqual(len(os.listdir(self.out)), 3)
        with open(os.path.join(self.out, "gpu-validation.md"), encoding="utf-8") as file:
            self.assertIn("KeyError", file.read())
        archive = os.path.join(self.out, "campaign.tar.gz")
        with open(archive, "r+b") as file:
            file.truncate(100)
        self.work = os.path.join(self.folder.path, "another")
        for given in (archive, os.path.join(self.out, "missing.tar.gz")):
            done = self.run_lease("--resume", given)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("test-gpu: --resume: cannot read", done.stderr)

    def test_what_says_most_takes_less_than_seven_minutes(self):
        """By the times that are expected; a GPU has not shown them yet."""
        planned = cases.lease_cases()
        first = planned[:[case.name for case in planned].index("operators")]
        self.assertLessEqual(sum(cases.expected_seconds(case) for case in first), 7 * 60)
        pairs = [case for case in first if case.stage == "pytorch"]
        self.assertEqual([case.name.rsplit("/", 1)[1] for case in pairs],
                         ["profile", "ckexec", "eager", "ckplan"] * 2)
        self.assertLess(sum(cases.expected_seconds(case) for case in planned), 15 * 60)

    def test_a_case_that_hangs_is_given_up_once_and_the_others_run(self):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(os.path.join(build, "bin"))
            for name, paths in machine.REHEARSED.items():
                target = os.path.join(build, "bin", os.path.basename(paths[0]))
                if name == "operators":
                    write_program(target, HANGING)
                else:
                    os.symlink(os.path.join(BUILD, paths[0]), target)
            self.folder.build = build
            done = self.run_lease("--case-limit", "20s")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            results = self.results()
            self.assertEqual(results["operators"]["reasons"], ["it took longer than 20.0 s"])
            self.assertEqual([case for case, result in results.items()
                              if result["status"] == "failed"], ["operators"])
            again = self.run_lease("--case-limit", "20s")
            self.assertNotIn("operators", again.stdout)

    def test_killed_at_random_moments_it_does_every_other_case_and_goes_on_elsewhere(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        moments = random.Random(seed)
        killed = 3
        for _ in range(killed):
            child = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(moments.uniform(0.5, 2))
            child.send_signal(signal.SIGKILL)
            child.wait()
        before = self.results()
        # The machine is gone; what it handed back last begins the campaign on another one.
        archive = os.path.join(self.out, "campaign.tar.gz")
        if os.path.exists(archive):
            self.work = os.path.join(self.folder.path, "another")
        done = self.run_lease("--resume", archive) if os.path.exists(archive) else self.run_lease()
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        results = self.results()
        self.assertEqual(set(results), {case.name for case in cases.lease_cases()})
        lost = [result["reasons"][0] for result in results.values()
                if result["status"] == "failed"]
        # A plan whose profile was lost is not a loss of its own.
        own = [reason for reason in lost if not reason.startswith("its costs were not measured")]
        self.assertLessEqual(len(own), killed)
        self.assertEqual(set(own), {"the campaign or the machine ended while it ran"} if own else set())
        for case in set(before) & set(results):
            if before[case]["status"] == "passed":
                self.assertEqual(results[case]["status"], "passed")


class Networks(unittest.TestCase):
    def test_the_gpu_computes_all_operators_of_the_networks(self):
        """The bundle's programs have no CPU backend, so they would refuse what the host computes."""
        seen = set()
        for case in [*cases.lease_cases(), *cases.all_cases(list(cases.STAGES), [])]:
            options = [part for part in case.sizes if not part.startswith("N=")]
            kind = (case.model, *options, case.precision == "bf16")
            if case.kind != "profile" or kind in seen:
                continue
            seen.add(kind)
            done = subprocess.run(
                [os.path.join(BUILD, machine.REHEARSED["ckexec"][0]), "profile",
                 os.path.join(ROOT, "testdata/models", f"{case.model}.onnx"), *case.sizes,
                 *cases.PRECISIONS[case.precision], "--workspace-limit", machine.WORKSPACE,
                 "--device", "h100", "-o", "-"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            on_host = [node for node in json.loads(done.stdout)["nodes"] if "on_host" in node]
            self.assertEqual(on_host, [], f"{case.name}: {done.stderr}")
            self.assertNotIn("the host computes", done.stderr)
        self.assertGreater(len(seen), 20)


class JournalOfStarts(unittest.TestCase):
    def test_a_hang_counts_as_a_start_and_a_stop_for_want_of_time_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(folder)
            for _ in range(5):
                self.assertTrue(journal.begin("a"))
                journal.interrupt("a", "the time limit was reached")
            for _ in range(MAX_STARTS):
                self.assertTrue(journal.begin("a"))
                journal.interrupt("a", "the time limit was reached", hung=True)
            self.assertFalse(journal.begin("a"))
            self.assertTrue(journal.begin("b", 1))
            self.assertFalse(journal.begin("b", 1))

    def test_in_a_lease_a_kill_is_forgiven_once_and_a_hang_never(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(folder)
            leased = {"most": MAX_LEASED_STARTS, "allows_hang": False}
            self.assertTrue(journal.begin("killed", **leased))
            self.assertTrue(journal.begin("killed", **leased))
            self.assertFalse(journal.begin("killed", **leased))
            self.assertTrue(journal.begin("hung", **leased))
            journal.interrupt("hung", "the time limit was reached", hung=True)
            self.assertFalse(journal.begin("hung", **leased))
            journal.finish("hung", {"status": "failed"})
            self.assertTrue(journal.begin("hung", **leased))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
