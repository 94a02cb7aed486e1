#include "lib/planning/algorithms/best/certificates.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "lib/testing/best/brute_force.h"

namespace ckplan {
namespace {

struct TestOp {
  std::vector<int> reads;  // Values; operation i makes value i.
  int64_t bytes = 1;
  bool may_repeat = true;
};

JointGraph GraphOf(const std::vector<TestOp>& ops, std::vector<int> results) {
  JointGraphParts parts;
  parts.name = "test";
  for (const TestOp& op : ops) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.bytes = Bytes(op.bytes);
    const ValueId write = parts.values.push_back(std::move(value));
    Operation operation;
    operation.file_id = static_cast<int64_t>(parts.ops.size());
    for (const int read : op.reads) operation.reads.emplace_back(static_cast<int32_t>(read));
    operation.writes = {write};
    operation.may_repeat = op.may_repeat;
    parts.ops.push_back(std::move(operation));
  }
  for (const int result : results) parts.results.emplace_back(static_cast<int32_t>(result));
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("certificates: a value that cannot be made again is live until its last reader") {
  // The edges are 0 ─▶ 1 ─▶ 2 ─▶ 3, and 0 ─▶ 3.
  std::vector<TestOp> ops = {{{}, 5}, {{0}, 1}, {{1}, 2}, {{2, 0}, 1}};
  const RunProblem repeatable(GraphOf(ops, {3}));
  CHECK(FindCertificates(repeatable).least_peak_any_plan == 5 + 2 + 1);  // At operation 3.
  CHECK(FindCertificates(repeatable).at == OpId(3));
  ops[2].bytes = 7;
  CHECK(FindCertificates(RunProblem(GraphOf(ops, {3}))).least_peak_any_plan == 7 + 5 + 1);
  ops[3].bytes = 0;
  ops[1].bytes = 4;
  CHECK(FindCertificates(RunProblem(GraphOf(ops, {3}))).least_peak_any_plan == 7 + 5);
  ops[0].may_repeat = false;
  const Certificates found = FindCertificates(RunProblem(GraphOf(ops, {3})));
  CHECK(found.least_peak_any_plan == 4 + 7 + 5);  // At operation 2, with value 0 in memory.
  CHECK(found.at == OpId(2));
}

TEST_CASE("certificates: all results are in memory at the end") {
  // The edges are 0 ─▶ 1, 0 ─▶ 2 ─▶ 3. Values 1 and 3 are results, and either may be made last.
  const RunProblem problem(GraphOf({{{}, 1}, {{0}, 6}, {{0}, 2}, {{2}, 3}}, {1, 3}));
  // The last run is that of operation 1.
  CHECK(FindCertificates(problem).least_peak_any_plan == 6 + 1 + 3);
}

TEST_CASE("certificates: branches that must wait for one another") {
  // Values 0 and 1 are large. 2 reads 0 and 3 reads 1, and both are small; 4 reads 2 and 3. In the
  // own order 0 and 1 are live at once, in the best order only one of them.
  const RunProblem problem(GraphOf({{{}, 10}, {{}, 20}, {{0}, 2}, {{1}, 3}, {{2, 3}, 1}}, {4}));
  const Certificates found = FindCertificates(problem);
  CHECK(found.least_peak_once_any_order == 20 + 3);
  CHECK(ExhaustiveMinPeakOnce(problem) == 20 + 3);
}

TEST_CASE("certificates: never above the least peak of any plan of a random graph") {
  int tight = 0;
  int tight_once = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const int op_count = static_cast<int>(rng.Between(2, seed % 10 == 0 ? 8 : 6));
    const RunProblem problem(RandomSmallGraph(rng, op_count));
    const Certificates found = FindCertificates(problem);
    const int64_t least = ExhaustiveMinPeak(problem);
    const int64_t least_once = ExhaustiveMinPeakOnce(problem);
    CHECK(found.least_peak_any_plan <= least);
    CHECK(found.least_peak_once_any_order <= least_once);
    CHECK(found.least_peak_any_plan <= found.least_peak_once_any_order);
    if (found.least_peak_any_plan == least) ++tight;
    if (found.least_peak_once_any_order == least_once) ++tight_once;
  }
  CHECK(tight > 2000);
  CHECK(tight_once > 2000);
}

TEST_CASE("certificates: a search that is cut short still gives a bound") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const RunProblem problem(ChainJointGraph(rng, 5));
    const Certificates whole = FindCertificates(problem);
    const Certificates cut_short = FindCertificates(problem, 30);
    CHECK(cut_short.least_peak_any_plan <= whole.least_peak_any_plan);
    CHECK(cut_short.least_peak_once_any_order <= whole.least_peak_once_any_order);
    CHECK(whole.least_peak_once_any_order <= ExhaustiveMinPeakOnce(problem));
  }
}

}  // namespace ckplan
