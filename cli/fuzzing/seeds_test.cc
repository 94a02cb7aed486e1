// Runs every fuzz target over its stored inputs: samples of what it reads, and inputs that once
// broke it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/plan_targets.h"
#include "lib/base/file.h"

namespace ckplan {
namespace {

std::vector<std::string> SeedsOf(std::string_view target) {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator("testdata/fuzz/" + std::string(target))) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Contents(const std::string& path) {
  Result<std::string> text = ReadWholeFile(path);
  REQUIRE(text.ok());
  return std::move(text).value();
}

}  // namespace

TEST_CASE("fuzz targets: they return from all stored inputs") {
  for (const FuzzTarget& target : kFuzzTargets) {
    const std::vector<std::string> seeds = SeedsOf(target.name);
    CHECK(!seeds.empty());
    for (const std::string& path : seeds) {
      MESSAGE(path);
      const std::string text = Contents(path);
      target.run({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    }
  }
}

TEST_CASE("fuzz targets: they return from empty and from short inputs") {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 167);
  for (const FuzzTarget& target : kFuzzTargets) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{17}, bytes.size()}) {
      target.run(FuzzInput(bytes).first(size));
    }
  }
}

TEST_CASE(
    "fuzz targets: stored plans pass the checker, so that mutants come close to valid plans") {
  int accepted = 0;
  for (const std::string& path : SeedsOf("plan"))
    accepted += IsAcceptedPlan(Contents(path)) ? 1 : 0;
  int accepted_joint = 0;
  for (const std::string& path : SeedsOf("joint_plan"))
    accepted_joint += IsAcceptedJointPlan(Contents(path)) ? 1 : 0;
  INFO("testdata/fuzz/README.md says how to make new plans");
  CHECK(accepted >= 3);
  CHECK(accepted_joint >= 3);
}

}  // namespace ckplan
