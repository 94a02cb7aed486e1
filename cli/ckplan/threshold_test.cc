#include "cli/ckplan/threshold.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

PlanFigures FiguresOf(int64_t peak, int64_t overhead) {
  PlanFigures figures;
  figures.peak = Bytes(peak);
  figures.arena = Bytes(peak + 1);
  figures.constants = {Bytes(100), Bytes(20), Bytes(3)};
  figures.optimizer_state = Bytes(4000);
  figures.forward_cost = Cost(400);
  figures.backward_cost = Cost(600);
  figures.overhead = Cost(overhead);
  return figures;
}

bool Holds(const std::string& text, const PlanFigures& figures, const PlanFigures& old) {
  PlanDigest old_plan;
  old_plan.figures = old;
  const auto verdicts = JudgeThresholds({*ParseThreshold(text)}, figures, {}, &old_plan);
  REQUIRE(verdicts.ok());
  return verdicts->front().holds;
}

}  // namespace

TEST_CASE("thresholds: every form is read") {
  struct Case {
    const char* text;
    Metric metric;
    bool is_growth;
    int64_t bytes;
    int64_t millionths_percent;
  };
  const Case cases[] = {
      {"peak>16GiB", Metric::kPeak, false, int64_t{16} << 30, 0},
      {"peak>0", Metric::kPeak, false, 0, 0},
      {"arena>16GB", Metric::kArena, false, 16'000'000'000, 0},
      {"total>1.5KiB", Metric::kTotal, false, 1536, 0},
      {"peak>64PiB", Metric::kPeak, false, int64_t{1} << 56, 0},
      {"overhead>0%", Metric::kOverhead, false, 0, 0},
      {"overhead>5%", Metric::kOverhead, false, 0, 5'000'000},
      {"overhead>0.1%", Metric::kOverhead, false, 0, 100'000},
      {"peak:+1%", Metric::kPeak, true, 0, 1'000'000},
      {"arena:+0%", Metric::kArena, true, 0, 0},
      {"total:+1000%", Metric::kTotal, true, 0, 1'000'000'000},
      {"time:+2.5%", Metric::kTime, true, 0, 2'500'000},
  };
  for (const Case& row : cases) {
    CAPTURE(row.text);
    const auto threshold = ParseThreshold(row.text);
    REQUIRE(threshold.ok());
    CHECK(threshold->text == row.text);
    CHECK(threshold->metric == row.metric);
    CHECK(threshold->is_growth == row.is_growth);
    CHECK(threshold->bytes == Bytes(row.bytes));
    CHECK(threshold->millionths_percent == row.millionths_percent);
  }
}

TEST_CASE("thresholds: anything else is refused") {
  const char* const texts[] = {
      // No form at all.
      "", ">", ":+", "peak", "peak>", "peak:", "peak:+", "Peak>16GiB", "pea>16GiB", "peak<16GiB",
      "peak>>16GiB", "peak=16GiB",
      // Signs.
      "peak:1%", "peak:-1%", "peak:++1%", "peak:+-1%", "peak>-1", "peak>+1", "overhead>-5%",
      // The wrong kind of value.
      "peak:+1GiB", "peak>5%", "peak>min", "overhead>5", "overhead>1GiB", "overhead:+5%", "time>2%",
      "time>1GiB", "time:+2", "total>60%", "arena:+16GiB",
      // Bad numbers.
      "peak >16GiB", "peak>16 GiB", "peak>16GiB ", "peak>16G", "peak>16gib", "peak>1.5",
      "peak>1.GiB", "peak>.5GiB", "peak>0x10", "peak>1e9", "peak>16GiBx", "peak:+1%%", "peak:+1,5%",
      "peak:+1e2%", "time:+nan%", "time:+inf%",
      // Too large: beyond what any graph may have, beyond 2^63, beyond every number.
      "peak>65PiB", "peak>9223372036854775808", "total>99999999999999999999999999GiB",
      "peak:+1001%", "overhead>99999999999999999999%"};
  for (const char* const text : texts) {
    CAPTURE(text);
    const auto threshold = ParseThreshold(text);
    REQUIRE_FALSE(threshold.ok());
    CHECK(threshold.error().code == ErrorCode::kUsage);
    CHECK(threshold.error().message.find(text) != std::string::npos);
  }
}

TEST_CASE("thresholds: a limit itself is within it, one more is not") {
  const PlanFigures old = FiguresOf(1000, 0);
  CHECK(Holds("peak>1000", FiguresOf(1000, 0), old));
  CHECK_FALSE(Holds("peak>1000", FiguresOf(1001, 0), old));
  CHECK(Holds("arena>1000", FiguresOf(999, 0), old));
  CHECK_FALSE(Holds("arena>1000", FiguresOf(1000, 0), old));
  CHECK(Holds("total>5123", FiguresOf(1000, 0), old));
  CHECK_FALSE(Holds("total>5122", FiguresOf(1000, 0), old));
  CHECK(Holds("total:+1%", FiguresOf(1051, 0), old));  // 1% of 5,123 is 51.23.
  CHECK_FALSE(Holds("total:+1%", FiguresOf(1052, 0), old));
  CHECK(Holds("overhead>5%", FiguresOf(1, 50), old));
  CHECK_FALSE(Holds("overhead>5%", FiguresOf(1, 51), old));
  CHECK(Holds("overhead>0.1%", FiguresOf(1, 1), old));
  CHECK_FALSE(Holds("overhead>0.1%", FiguresOf(1, 2), old));
  CHECK(Holds("peak:+1%", FiguresOf(1010, 0), old));
  CHECK_FALSE(Holds("peak:+1%", FiguresOf(1011, 0), old));
  CHECK(Holds("peak:+0%", FiguresOf(900, 0), old));
  CHECK(Holds("time:+2%", FiguresOf(1, 20), old));
  CHECK_FALSE(Holds("time:+2%", FiguresOf(1, 21), old));
  CHECK(Holds("time:+2%", FiguresOf(1, 70), FiguresOf(1, 50)));
  CHECK_FALSE(Holds("time:+2%", FiguresOf(1, 72), FiguresOf(1, 50)));
}

TEST_CASE("thresholds: the largest figures do not overflow") {
  PlanFigures largest;
  largest.peak = largest.arena = Bytes::Max();
  largest.forward_cost = largest.backward_cost = largest.overhead = Cost::Max();
  largest.constants = {Bytes::Max(), Bytes::Max(), Bytes::Max()};
  largest.optimizer_state = Bytes::Max();
  CHECK(Holds("total:+0%", largest, largest));
  CHECK_FALSE(Holds("total>64PiB", largest, largest));
  CHECK_FALSE(Holds("total:+1000%", largest, FiguresOf(1, 0)));
  CHECK(Holds("time:+0%", largest, largest));
  CHECK_FALSE(Holds("time:+1000%", largest, FiguresOf(1, 0)));
  CHECK_FALSE(Holds("peak:+1000%", largest, FiguresOf(1, 0)));
  CHECK(Holds("overhead>50%", largest, largest));
  CHECK_FALSE(Holds("overhead>49.9%", largest, largest));
}

TEST_CASE("thresholds: growth from nothing is above every percentage") {
  CHECK_FALSE(Holds("peak:+1000%", FiguresOf(1, 0), FiguresOf(0, 0)));
  CHECK(Holds("peak:+0%", FiguresOf(0, 0), FiguresOf(0, 0)));
}

TEST_CASE("thresholds: growth needs an older plan, of time one with the same costs") {
  const Threshold peak = *ParseThreshold("peak:+1%"), time = *ParseThreshold("time:+1%");
  const PlanFigures figures = FiguresOf(1, 0);
  const auto alone = JudgeThresholds({peak}, figures, {}, nullptr);
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::kUsage);
  PlanDigest old_plan;
  old_plan.request.cost_model = "paper";
  CHECK(JudgeThresholds({peak}, figures, {}, &old_plan).ok());
  const auto other_costs = JudgeThresholds({time}, figures, {}, &old_plan);
  REQUIRE_FALSE(other_costs.ok());
  CHECK(other_costs.error().code == ErrorCode::kUsage);
  CHECK(other_costs.error().message.find("\"paper\"") != std::string::npos);
  PlanRequest request;
  request.cost_model = "paper";
  CHECK(JudgeThresholds({time}, figures, request, &old_plan).ok());
  request.cost_unit = "ns";
  CHECK_FALSE(JudgeThresholds({time}, figures, request, &old_plan).ok());
}

TEST_CASE("thresholds: a verdict tells the figure, the limit, and a kind without numbers") {
  const PlanFigures figures = FiguresOf(2048, 35);
  PlanDigest old_plan;
  old_plan.figures = FiguresOf(1024, 0);
  const auto verdicts = JudgeThresholds(
      {*ParseThreshold("peak>1KiB"), *ParseThreshold("time:+2%"), *ParseThreshold("overhead>50%")},
      figures, {}, &old_plan);
  REQUIRE(verdicts.ok());
  REQUIRE(verdicts->size() == 3);
  CHECK((*verdicts)[0].check == "peak-limit");
  CHECK((*verdicts)[0].message == "peak 2.00 KiB (2048 bytes) is above 1KiB");
  CHECK((*verdicts)[1].check == "time-growth");
  CHECK((*verdicts)[1].message == "time went from 1000 to 1035, +3.50%; allowed is only +2%");
  CHECK((*verdicts)[2].holds);
  CHECK((*verdicts)[2].message == "overhead +3.50% of a training step is within 50%");
}

}  // namespace ckplan
