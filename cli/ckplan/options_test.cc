// Tests of ckplan at its limits, with a real clock and real memory.
#include "cli/ckplan/options.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "cli/ckplan/commands.h"
#include "cli/common/guard.h"
#include "cli/common/memory_limit.h"
#include "lib/base/file.h"
#include "lib/files/emit/json_graph.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

// Makes blocks of two nodes, each with a connection past it: so many that no algorithm finishes at
// once.
TensorGraph ResidualGraph(int32_t nodes) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < nodes; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(64 + i % 1000), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
    if (i > 2 && i % 3 == 0) edges.emplace_back(i - 3, i);
  }
  return GraphFromVertices("residual", vertices, edges);
}

// CPU time of all threads of this process; other programs do not count.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Ended {
  int status = 0;
  std::string errors;
};

// Runs `ckplan plan` in a process of its own.
Ended RunPlanCommand(const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  const std::string errors = folder / "errors";
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    _exit(RunGuarded({"ckplan"}, [&] {
      const Result<ExitCode> code = RunCommand(*FindCommand("plan"), arguments);
      if (code.ok()) return static_cast<int>(*code);
      PrintError(code.error(), "ckplan");
      return static_cast<int>(ExitCodeOf(code.error().code));
    }));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, *ReadWholeFile(errors)};
}

// This must be the first test that takes much memory: memory that a process has had is not limited.
TEST_CASE("memory limit: with any limit the program ends with a plan or with 3, and cleans up" *
          doctest::skip(!kCanLimitMemory)) {
  const TemporaryFolder folder;
  const std::string graph = folder / "graph.json";
  std::ofstream(graph) << WriteGraphJson(ResidualGraph(10'000));
  int refused = 0;
  for (int mebibytes = 10; mebibytes <= 60; mebibytes += 2) {
    CAPTURE(mebibytes);
    const std::string output = folder / "plan.json";
    const Ended ended = RunPlanCommand({graph, "--algo", "chen-sqrt", "-q", "-o", output,
                                        "--memory-limit", std::to_string(mebibytes) + "MiB"},
                                       folder);
    if (ended.status == 0) {
      CHECK(unlink(output.c_str()) == 0);
    } else {
      CHECK(ended.status == 3);
      CAPTURE(ended.errors);
      CHECK(ended.errors.find("memory") != std::string::npos);
      ++refused;
    }
    int left = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      left += file.path().filename().string().starts_with("plan.json");
    }
    CHECK(left == 0);
  }
  CHECK(refused < 26);
  CHECK(refused > 5);
}

TEST_CASE("time limit: every algorithm on graphs of any size ends soon after it") {
  const TensorGraph graph = ResidualGraph(50'000);
  int stopped = 0;
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    PlanRequest request;
    request.algorithm = std::string(info.name);
    request.budget.kind = Budget::Kind::kMin;
    const double start = CpuSeconds();
    const Interrupt interrupt(std::chrono::milliseconds(300));
    const Result<Plan> plan = MakePlan(graph, request, {interrupt.token()});
    CHECK(CpuSeconds() - start < 1.5);
    stopped += !plan.ok() || plan->figures.guarantee.starts_with(kStoppedEarly);
  }
  CHECK(stopped > 3);
}

}  // namespace
}  // namespace ckplan
