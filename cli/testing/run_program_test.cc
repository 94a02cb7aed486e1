#include "cli/testing/run_program.h"

#include <doctest/doctest.h>
#include <signal.h>

namespace ckplan {
namespace {

constexpr int kSignalBase = 128;

TEST_CASE("run program: one without an end is killed by the CPU time that it takes") {
  ProgramRun run{"while :; do :; done", "/"};
  run.cpu_seconds = 1;
  CHECK(RunProgram(run).status == kSignalBase + SIGXCPU);
}

TEST_CASE("run program: one that only waits is not killed, however long that is") {
  ProgramRun run{"sleep 2; echo done", "/"};
  run.cpu_seconds = 1;
  const ProgramResult result = RunProgram(run);
  CHECK(result.status == 0);
  CHECK(result.out == "done\n");
}

}  // namespace
}  // namespace ckplan
