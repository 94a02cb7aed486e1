// Runs every fuzz target over its stored inputs: samples of what it reads, and inputs that once
// broke it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/file.h"
#include "lib/testing/bundle.h"

namespace ckplan {
namespace {

Bundle SeedsOf(std::string_view target) {
  const Result<std::string> text = ReadWholeFile("testdata/fuzz/" + std::string(target) + ".txt");
  REQUIRE(text.ok());
  Result<Bundle> seeds = ParseBundle(*text);
  REQUIRE_MESSAGE(seeds.ok(), seeds.error().message);
  CHECK(FormatBundle(*seeds) == *text);
  return *std::move(seeds);
}

}  // namespace

TEST_CASE("fuzz targets: they return from all stored inputs") {
  for (const FuzzTarget& target : kFuzzTargets) {
    for (const BundleEntry& seed : SeedsOf(target.name).entries) {
      MESSAGE(target.name << ": " << seed.name);
      target.run({reinterpret_cast<const uint8_t*>(seed.text.data()), seed.text.size()});
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
  for (const BundleEntry& seed : SeedsOf("plan").entries) {
    accepted += IsAcceptedPlan(seed.text) ? 1 : 0;
  }
  int accepted_joint = 0;
  for (const BundleEntry& seed : SeedsOf("joint_plan").entries) {
    accepted_joint += IsAcceptedJointPlan(seed.text) ? 1 : 0;
  }
  INFO("testdata/README.md says how to make new plans");
  CHECK(accepted >= 3);
  CHECK(accepted_joint >= 3);
}

}  // namespace ckplan
