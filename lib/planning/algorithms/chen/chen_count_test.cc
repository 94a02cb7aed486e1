#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

Plan PlanByCount(const TensorGraph& graph, int64_t segments = 0) {
  PlanRequest request;
  request.algorithm = "chen-count";
  if (segments > 0) request.setting = KnobSetting{"segments", segments};
  return *MakePlan(graph, request, {});
}

// Returns the last node of each segment, counted from 1, which is how Hong et al. write
// checkpoints.
std::vector<int64_t> EndsOf(const Plan& plan) {
  std::vector<int64_t> ends;
  for (const NodeId id : plan.decisions.ids()) {
    const bool goes_on = !ends.empty() && plan.decisions[id].segment + 1 == std::ssize(ends);
    if (!goes_on) ends.push_back(0);
    ends.back() = id.index() + 1;
  }
  return ends;
}

}  // namespace

// In Hong et al. 2024, Table 2, VGG-19 has 24 layers and AlexNet 15; ceil(sqrt) is 5 and 4.
TEST_CASE("chen-count: the checkpoint sets of Hong's Table 2, whatever the layers' sizes") {
  Rng rng(1);
  std::vector<int64_t> sizes(24);
  for (int64_t& size : sizes) size = rng.Between(1, 1000);
  CHECK(EndsOf(PlanByCount(ChainOf(sizes))) == std::vector<int64_t>{5, 10, 15, 20, 24});
  CHECK(EndsOf(PlanByCount(ChainOf(sizes), 5)) == std::vector<int64_t>{5, 10, 15, 20, 24});
  sizes.resize(15);
  CHECK(EndsOf(PlanByCount(ChainOf(sizes))) == std::vector<int64_t>{4, 8, 12, 15});
}

TEST_CASE(
    "chen-count: without a setting, every ceil(sqrt(n))-th layer and the last are checkpoints") {
  for (int64_t n = 1; n <= 150; ++n) {
    CAPTURE(n);
    int64_t step = 1;
    while (step * step < n) ++step;
    std::vector<int64_t> expected;
    for (int64_t end = step; end < n; end += step) expected.push_back(end);
    expected.push_back(n);
    CHECK(EndsOf(PlanByCount(ChainOf(std::vector<int64_t>(static_cast<size_t>(n), 1)))) ==
          expected);
  }
}

// ceil(24 / 7) = 4, but five segments of four would leave only four layers for two segments.
TEST_CASE("chen-count: there are as many segments as asked for") {
  const TensorGraph graph = ChainOf(std::vector<int64_t>(24, 10));
  CHECK(EndsOf(PlanByCount(graph, 7)) == std::vector<int64_t>{4, 8, 12, 16, 20, 23, 24});
  for (int64_t segments = 1; segments <= 24; ++segments) {
    CHECK(std::ssize(EndsOf(PlanByCount(graph, segments))) == segments);
  }
}

// Two segments of two layers keep b: x + y = 9 + 10. Keeping c would need 1 + 11.
TEST_CASE("chen-count: not optimal if layers differ in size") {
  const TensorGraph graph = ChainOf({1, 9, 1, 9});
  CHECK(PlanByCount(graph, 2).figures.paper.peak == Bytes(19));
  for (int64_t segments = 1; segments <= 4; ++segments) {
    CHECK(PlanByCount(graph, segments).figures.paper.peak >= Bytes(19));
  }
}

}  // namespace ckplan
