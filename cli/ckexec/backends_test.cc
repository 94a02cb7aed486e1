#include "cli/ckexec/backends.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/ckexec/commands.h"
#include "cli/ckexec/options.h"

namespace ckplan {

namespace {

// On machines with a GPU there is no error to check.
TEST_CASE("backends: without CUDA, one line says what is missing") {
  ExecOptions options;
  options.backend = "cuda";
  const auto backend = MakeBackend(options);
  if (backend.ok()) return;
  CHECK(backend.error().code == ErrorCode::kUnsupported);
  const std::string& message = backend.error().message;
  CAPTURE(message);
  CHECK(message.find('\n') == std::string::npos);
  CHECK((message.find("the cuda backend cannot run here: ") == 0 ||
         message.find(" was not found: ") != std::string::npos));
}

TEST_CASE("backends: the default is a backend that this build has") {
  std::string backend;
  CommandLine line("ckexec run", "ckexec run", "");
  AddBackendChoice(line, "what runs it", &backend);
  REQUIRE(line.Parse({}).ok());
  CHECK(OperatorsOf(backend).ok());
}

TEST_CASE("backends: if no option is typed, none is refused") {
  for (const char* backend : {"cpu", "cuda"}) {
    CAPTURE(backend);
    ExecOptions options;
    CommandLine line("ckexec run", "ckexec run", "");
    AddBackendOptions(line, options);
    REQUIRE(line.Parse({"--backend", backend}).ok());
    const auto made = MakeBackend(options);
    CHECK((made.ok() || made.error().code != ErrorCode::kUsage));
  }
}

TEST_CASE("backends: options of one backend are refused by the other") {
  ExecOptions tf32;
  tf32.backend = "cpu";
  tf32.allows_tf32 = true;
  CHECK(MakeBackend(tf32).error().code == ErrorCode::kUsage);
  ExecOptions convolutions;
  convolutions.backend = "cpu";
  convolutions.tf32 = "convolutions";
  CHECK(MakeBackend(convolutions).error().code == ErrorCode::kUsage);
  convolutions.backend = "cuda";
  convolutions.allows_tf32 = true;  // Which is --tf32 all.
  CHECK(MakeBackend(convolutions).error().code == ErrorCode::kUsage);
  ExecOptions limit;
  limit.backend = "cpu";
  limit.workspace_limit = "1MiB";
  CHECK(MakeBackend(limit).error().code == ErrorCode::kUsage);
  ExecOptions threads;
  threads.backend = "cuda";
  threads.threads = "2";
  CHECK(MakeBackend(threads).error().code == ErrorCode::kUsage);
}

TEST_CASE("backends: the backends have the same operators") {
  const auto cpu = OperatorsOf("cpu");
  const auto cuda = OperatorsOf("cuda");
  if (!cpu.ok() || !cuda.ok()) return;
  const auto same = [](const OpSupport& a, const OpSupport& b) {
    return a.type == b.type && a.has_gradient == b.has_gradient;
  };
  CHECK(std::equal(cpu->begin(), cpu->end(), cuda->begin(), cuda->end(), same));
}

}  // namespace

TEST_CASE("duration: the unit leaves digits before the decimal point") {
  CHECK(DurationText(0) == "0 us");
  CHECK(DurationText(0.00064) == "640 us");
  CHECK(DurationText(0.001) == "1.0 ms");
  CHECK(DurationText(0.0123) == "12.3 ms");
  CHECK(DurationText(1.838) == "1.84 s");
}

}  // namespace ckplan
