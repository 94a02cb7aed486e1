#include "cli/ckplan/compare_table.h"

#include <doctest/doctest.h>

#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

AlgorithmRow RowOfBest() {
  AlgorithmRow row;
  row.info = FindSolver("exact-dp").value();
  row.algorithm = "exact-dp";
  return row;
}

TEST_CASE("compare table: a search that a limit has cut short never looks finished") {
  Comparison comparison;
  AlgorithmRow row = RowOfBest();
  row.plan.emplace();
  row.plan->figures.is_optimal = true;
  CHECK(StatusWord(row) == "optimal");
  row.plan->figures.guarantee = std::string(kStoppedEarly) + "best found";
  CHECK(StatusWord(row) == kStoppedStatus);
  comparison.rows = {row};
  CHECK(HasStopped(comparison));
  TextTable table = CompareTable(comparison, UnitOf(Bytes(1)), {});
  const std::string text = table.Text(0, 200);
  CHECK(text.find(kStoppedStatus) != text.npos);
  CHECK(CompareLegend("B", text).find(kStoppedNote) != std::string::npos);
  KeepColumnsOfPapers(&table);
  CHECK(table.rows.front().front() == "exact-dp (stopped early)");
}

TEST_CASE("compare table: without a plan, the status names the limit that ended the search") {
  AlgorithmRow row = RowOfBest();
  row.error = MakeError(ErrorCode::kTimeout, "stopped");
  CHECK(StatusWord(row) == "work limit");
  row.has_time_limit = true;
  CHECK(StatusWord(row) == "time limit");
}

}  // namespace
}  // namespace ckplan
