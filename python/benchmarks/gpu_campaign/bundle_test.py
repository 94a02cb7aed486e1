#!/usr/bin/env python3
"""Tests scripts/bundle, and ckexec in a root that holds nothing but it, the C library and wheels.

  python/benchmarks/gpu_campaign/bundle_test.py BUILD [TEST...]

BUILD has ckexec_emulated, which runs over an emulated GPU, and ckplan; where there is a CUDA toolkit
it has the programs of the bundle, too.
"""

import importlib.machinery
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(BENCHMARKS))
sys.path.insert(0, BENCHMARKS)

from gpu_campaign.machine import PROGRAMS, REHEARSED, TESTS  # noqa: E402

BUILD = ""
LIBRARIES = ["libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9"]


def load_bundle():
    """Returns scripts/bundle as a module."""
    loader = importlib.machinery.SourceFileLoader("bundle", os.path.join(ROOT, "scripts/bundle"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bundle", loader))
    loader.exec_module(module)
    return module


def shared_libraries(program):
    """Returns the paths of the libraries that the program starts with, the loader included."""
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", lines)


class BareRoot:
    """A root with a program, the libraries it starts with, a model, and nothing else."""

    def __init__(self, test, program):
        self.path = tempfile.mkdtemp(prefix="ckplan_root_")
        test.addCleanup(lambda: shutil.rmtree(self.path))
        self.add(program, "/program")
        for library in shared_libraries(program):
            self.add(library, library)
        self.add(os.path.join(ROOT, "testdata/models/tiny_mlp.onnx"), "/model.onnx")

    def add(self, source, target):
        path = self.path + target
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(source, path)

    def install(self, folder, names):
        """Puts libraries that replace NVIDIA's where a package manager would put those."""
        emulated = os.path.join(BUILD, "lib/executor/cuda/testing/emulated/libraries/libckplan_emulated_libraries.so")
        for name in names:
            self.add(emulated, f"{folder}/{name}")

    def run(self, environment):
        command = [*ENTER, shutil.which("chroot"), self.path, "/program", "profile", "/model.onnx",
                   "-D", "N=8", "--backend", "cuda", "--runs", "1", "-q", "-o", "-"]
        return subprocess.run(command, env={"PATH": "/usr/bin:/bin", **environment},
                              capture_output=True, text=True, check=False)


def how_to_enter():
    """Returns what lets us change the root: nothing for root, else a user namespace, or None."""
    if os.geteuid() == 0:
        return []
    unshare = [shutil.which("unshare") or "unshare", "--map-root-user"]
    try:
        done = subprocess.run([*unshare, "true"], capture_output=True, check=False)
    except OSError:
        return None
    return unshare if done.returncode == 0 else None


ENTER = how_to_enter()


class Bundle(unittest.TestCase):
    def programs(self):
        paths = [os.path.join(BUILD, paths[0]) for paths in PROGRAMS.values()]
        missing = [path for path in paths if not os.path.exists(path)]
        if missing:
            self.skipTest(f"there is no {missing[0]}, because no CUDA toolkit was found")
        return BUILD

    def test_it_has_what_a_campaign_needs_and_says_that_there_is_no_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = os.path.join(folder, "bundle.tar.gz")
            subprocess.run([os.path.join(ROOT, "scripts/bundle"), "--programs", self.programs(),
                            "-o", archive], check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            unpacked = os.path.join(folder, "ckplan-gpu")
            done = subprocess.run(["scripts/test-gpu", "--build", ".", "-o", "results"],
                                  cwd=unpacked, capture_output=True, text=True, check=False)
            if done.returncode != 77:
                self.skipTest("this machine has a GPU")
            self.assertIn("SKIPPED: nothing else was run: ckexec: the cuda backend cannot run here",
                          done.stderr)
            self.assertIn("gpu-validation.html", os.listdir(os.path.join(unpacked, "results")))

    def test_each_test_case_belongs_to_the_operators_or_to_the_executor(self):
        program = os.path.join(self.programs(), PROGRAMS["operators"][0])
        self.assertEqual(PROGRAMS["executor"], PROGRAMS["operators"])

        def names(*options):
            done = subprocess.run([program, "--list-test-cases", "--no-intro", *options],
                                  capture_output=True, text=True, check=True)
            return [line for line in done.stdout.splitlines() if not line.startswith(("[", "="))]

        parts = [names(TESTS[part]) for part in ("operators", "executor")]
        self.assertTrue(all(parts))
        self.assertEqual(sorted(parts[0] + parts[1]), sorted(names()))

    def test_the_same_input_gives_the_same_bytes(self):
        bundle = load_bundle()
        files = {name: path for name, path in bundle.contents(BUILD).items()
                 if not name.startswith("bin/")}
        first, total = bundle.pack(files)
        self.assertEqual(bundle.pack(dict(reversed(files.items())))[0], first)
        with tarfile.open(fileobj=io.BytesIO(first)) as tar:
            entries = {entry.name: entry for entry in tar}
        self.assertEqual(total, sum(entry.size for entry in entries.values()))
        self.assertEqual(entries["ckplan-gpu/scripts/test-gpu"].mode, 0o755)
        self.assertEqual(entries["ckplan-gpu/README"].mode, 0o644)
        self.assertNotIn("ckplan-gpu/python/benchmarks/gpu_campaign/bundle_test.py", entries)

    def test_the_readme_has_at_most_ten_lines(self):
        with open(os.path.join(ROOT, "python/benchmarks/gpu_campaign/bundle.txt"), encoding="utf-8") as file:
            self.assertLessEqual(len(file.readlines()), 10)

    def test_what_is_too_large_is_refused_and_nothing_is_written(self):
        bundle = load_bundle()
        bundle.LIMIT = 1000
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "bundle.tar.gz")
            argv, sys.argv = sys.argv, ["bundle", "--programs", self.programs(), "-o", output]
            errors, sys.stderr = sys.stderr, io.StringIO()
            try:
                self.assertEqual(bundle.main(), 1)
                self.assertIn("MiB, and may have 64", sys.stderr.getvalue())
            finally:
                sys.argv, sys.stderr = argv, errors
            self.assertEqual(os.listdir(folder), [])


@unittest.skipIf(ENTER is None, "this user may not change the root")
class InABareRoot(unittest.TestCase):
    def emulated(self):
        return BareRoot(self, os.path.join(BUILD, REHEARSED["ckexec"][0]))

    def test_libraries_are_found_as_pip_uv_and_conda_lay_them_out(self):
        wheels = "lib/python3.12/site-packages/nvidia"
        for variable, prefix, folders in (
                ("VIRTUAL_ENV", "/venv", [f"{wheels}/cublas/lib", f"{wheels}/cudnn/lib"]),
                ("VIRTUAL_ENV", "/project/.venv", [f"{wheels}/cu13/lib", f"{wheels}/cudnn/lib"]),
                ("CONDA_PREFIX", "/conda/envs/x", ["lib", "lib"])):
            with self.subTest(prefix):
                root = self.emulated()
                root.install(f"{prefix}/{folders[0]}", LIBRARIES[:2])
                root.install(f"{prefix}/{folders[1]}", LIBRARIES[2:])
                environment = {"CKEXEC_CUDA_PATH": "/none", variable: prefix}
                done = root.run(environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("cuBLAS 13.0, cuDNN 9.19", done.stdout)
                self.assertIn("left: 0 allocations, 0 streams", done.stderr)

    def test_without_cudnn_it_says_what_to_install(self):
        root = self.emulated()
        root.install("/venv/lib/python3.12/site-packages/nvidia/cublas/lib", LIBRARIES[:2])
        done = root.run({"CKEXEC_CUDA_PATH": "/none", "VIRTUAL_ENV": "/venv"})
        self.assertEqual(done.returncode, 3)
        self.assertIn("cuDNN 9 was not found: no libcudnn.so.9 on", done.stderr)
        self.assertIn("pip install nvidia-cudnn-cu13", done.stderr)

    def test_without_a_driver_it_says_so(self):
        program = os.path.join(BUILD, PROGRAMS["ckexec"][0])
        done = BareRoot(self, program).run({})
        self.assertEqual(done.returncode, 3)
        self.assertIn("ckexec: the cuda backend cannot run here: ", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
