#include "cli/testing/run_program.h"

#include <doctest/doctest.h>
#include <signal.h>

namespace ckplan {
namespace {

constexpr int kSignalBase = 128;

TEST_CASE("run program: an endless program is killed by the limit of CPU time") {
  ProgramRun run{"while :; do :; done", "/"};
  run.cpu_seconds = 1;
  CHECK(RunProgram(run).status == kSignalBase + SIGXCPU);
}

TEST_CASE("run program: a program that only waits is not killed, however long it waits") {
  ProgramRun run{"sleep 2; echo done", "/"};
  run.cpu_seconds = 1;
  const ProgramResult result = RunProgram(run);
  CHECK(result.status == 0);
  CHECK(result.out == "done\n");
}

}  // namespace
}  // namespace ckplan
