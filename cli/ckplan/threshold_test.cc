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
  OlderPlan older;
  older.plan.emplace();
  older.plan->figures = old;
  const auto verdicts = JudgeThresholds({*ParseThreshold(text)}, figures, {}, older);
  REQUIRE(verdicts.ok());
  return verdicts->front().holds;
}

}  // namespace

TEST_CASE("thresholds: every form is read") {
  using Unit = Threshold::Unit;
  constexpr LimitSubject kPlan = LimitSubject::kPlan, kModel = LimitSubject::kModel;
  struct Case {
    const char* text;
    Metric metric;
    bool is_growth;
    Unit unit;
    int64_t value;
    LimitSubject subject = kPlan;
  };
  const Case cases[] = {
      {"peak>16GiB", Metric::kPeak, false, Unit::kBytes, int64_t{16} << 30},
      {"peak>0", Metric::kPeak, false, Unit::kBytes, 0},
      {"arena>16GB", Metric::kArena, false, Unit::kBytes, 16'000'000'000},
      {"total>1.5KiB", Metric::kTotal, false, Unit::kBytes, 1536},
      {"peak>64PiB", Metric::kPeak, false, Unit::kBytes, int64_t{1} << 56},
      {"peak>60%", Metric::kPeak, false, Unit::kPercent, 60'000'000},
      {"overhead>0%", Metric::kOverhead, false, Unit::kPercent, 0},
      {"overhead>5%", Metric::kOverhead, false, Unit::kPercent, 5'000'000},
      {"overhead>0.1%", Metric::kOverhead, false, Unit::kPercent, 100'000},
      {"peak:+1%", Metric::kPeak, true, Unit::kPercent, 1'000'000},
      {"arena:+0%", Metric::kArena, true, Unit::kPercent, 0},
      {"total:+1000%", Metric::kTotal, true, Unit::kPercent, 1'000'000'000},
      {"time:+2.5%", Metric::kTime, true, Unit::kPercent, 2'500'000},
      {"peak:+10MiB", Metric::kPeak, true, Unit::kBytes, 10 << 20},
      {"arena:+0B", Metric::kArena, true, Unit::kBytes, 0},
      {"total:+1.5kB", Metric::kTotal, true, Unit::kBytes, 1500},
      {"peak>16GiB", Metric::kPeak, false, Unit::kBytes, int64_t{16} << 30, kModel},
      {"total>1GB", Metric::kTotal, false, Unit::kBytes, 1'000'000'000, kModel},
      {"activations>1KiB", Metric::kActivations, false, Unit::kBytes, 1024, kModel},
      {"saved>1KiB", Metric::kSaved, false, Unit::kBytes, 1024, kModel},
      {"parameters>7", Metric::kParameters, false, Unit::kBytes, 7, kModel},
      {"warnings>0", Metric::kWarnings, false, Unit::kCount, 0, kModel},
  };
  for (const Case& row : cases) {
    CAPTURE(row.text);
    const auto threshold = ParseThreshold(row.text, row.subject);
    REQUIRE(threshold.ok());
    CHECK(threshold->text == row.text);
    CHECK(threshold->metric == row.metric);
    CHECK(threshold->is_growth == row.is_growth);
    CHECK(threshold->unit == row.unit);
    CHECK(threshold->value == row.value);
  }
}

TEST_CASE("thresholds: limits for plans are refused for models, and the reverse") {
  for (const char* const text : {"arena>1GiB", "overhead>5%", "peak:+1%", "peak:+1MiB", "time:+1%",
                                 "warnings>1KiB", "warnings>-1", "saved>5%"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseThreshold(text, LimitSubject::kModel).ok());
  }
  for (const char* const text : {"activations>1GiB", "saved>1GiB", "parameters>1", "warnings>0"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseThreshold(text, LimitSubject::kPlan).ok());
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
      "peak:+1", "peak>min", "overhead>5", "overhead>1GiB", "overhead:+5%", "time>2%", "time>1GiB",
      "time:+2", "time:+1GiB", "overhead:+1GiB", "total>60%", "arena:+16", "peak:+10M",
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
  PlanFigures share = FiguresOf(600, 0);
  share.baseline_peak = Bytes(1000);
  CHECK(Holds("peak>60%", share, old));
  share.peak = Bytes(601);
  CHECK_FALSE(Holds("peak>60%", share, old));
  CHECK(Holds("peak>60.1%", share, old));
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
  CHECK(Holds("peak:+1KiB", FiguresOf(2024, 0), old));
  CHECK_FALSE(Holds("peak:+1KiB", FiguresOf(2025, 0), old));
  CHECK(Holds("total:+10B", FiguresOf(1010, 0), old));
  CHECK_FALSE(Holds("total:+10B", FiguresOf(1011, 0), old));
  CHECK(Holds("arena:+0B", FiguresOf(900, 0), old));
  CHECK(Holds("time:+2%", FiguresOf(1, 20), old));
  CHECK_FALSE(Holds("time:+2%", FiguresOf(1, 21), old));
  CHECK(Holds("time:+2%", FiguresOf(1, 70), FiguresOf(1, 50)));
  CHECK_FALSE(Holds("time:+2%", FiguresOf(1, 72), FiguresOf(1, 50)));
}

TEST_CASE("thresholds: the largest figures do not overflow") {
  PlanFigures largest;
  largest.peak = largest.arena = largest.baseline_peak = Bytes::Max();
  largest.forward_cost = largest.backward_cost = largest.overhead = Cost::Max();
  largest.constants = {Bytes::Max(), Bytes::Max(), Bytes::Max()};
  largest.optimizer_state = Bytes::Max();
  CHECK(Holds("total:+0%", largest, largest));
  CHECK_FALSE(Holds("total>64PiB", largest, largest));
  CHECK(Holds("peak>100%", largest, largest));
  CHECK_FALSE(Holds("peak>99.9%", largest, largest));
  CHECK_FALSE(Holds("total:+1000%", largest, FiguresOf(1, 0)));
  CHECK(Holds("time:+0%", largest, largest));
  CHECK_FALSE(Holds("time:+1000%", largest, FiguresOf(1, 0)));
  CHECK_FALSE(Holds("peak:+1000%", largest, FiguresOf(1, 0)));
  CHECK_FALSE(Holds("total:+64PiB", largest, FiguresOf(1, 0)));
  CHECK(Holds("total:+0B", FiguresOf(1, 0), largest));
  CHECK(Holds("overhead>50%", largest, largest));
  CHECK_FALSE(Holds("overhead>49.9%", largest, largest));
}

TEST_CASE("thresholds: growth from nothing is above every percentage") {
  CHECK_FALSE(Holds("peak:+1000%", FiguresOf(1, 0), FiguresOf(0, 0)));
  CHECK(Holds("peak:+0%", FiguresOf(0, 0), FiguresOf(0, 0)));
}

TEST_CASE("thresholds: growth needs an older plan, and growth of time one with the same costs") {
  const Threshold peak = *ParseThreshold("peak:+1%"), time = *ParseThreshold("time:+1%");
  const PlanFigures figures = FiguresOf(1, 0);
  const auto alone = JudgeThresholds({peak}, figures, {}, OlderPlan{});
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::kUsage);
  OlderPlan older;
  older.plan.emplace();
  older.plan->request.cost_model = "paper";
  CHECK(JudgeThresholds({peak}, figures, {}, older).ok());
  const auto other_costs = JudgeThresholds({time}, figures, {}, older);
  REQUIRE_FALSE(other_costs.ok());
  CHECK(other_costs.error().code == ErrorCode::kUsage);
  CHECK(other_costs.error().message.find("\"paper\"") != std::string::npos);
  PlanRequest request;
  request.cost_model = "paper";
  CHECK(JudgeThresholds({time}, figures, request, older).ok());
  request.cost_unit = "ns";
  CHECK_FALSE(JudgeThresholds({time}, figures, request, older).ok());
}

TEST_CASE("thresholds: limits on growth do not apply to a new plan") {
  const auto verdicts = JudgeThresholds(
      {*ParseThreshold("peak:+1%"), *ParseThreshold("peak>1"), *ParseThreshold("time:+0%")},
      FiguresOf(2, 0), {}, OlderPlan{std::nullopt, "there is none"});
  REQUIRE(verdicts.ok());
  CHECK((*verdicts)[0].holds);
  CHECK((*verdicts)[0].message == "there is none");
  CHECK_FALSE((*verdicts)[1].holds);
  CHECK((*verdicts)[2].holds);
}

TEST_CASE("thresholds: a verdict has the figure, the limit, and a kind without numbers") {
  const PlanFigures figures = FiguresOf(2048, 35);
  OlderPlan older;
  older.plan.emplace();
  older.plan->figures = FiguresOf(1024, 0);
  const auto verdicts =
      JudgeThresholds({*ParseThreshold("peak>1KiB"), *ParseThreshold("time:+2%"),
                       *ParseThreshold("overhead>50%"), *ParseThreshold("peak:+1000B")},
                      figures, {}, older);
  REQUIRE(verdicts.ok());
  REQUIRE(verdicts->size() == 4);
  CHECK((*verdicts)[0].check == "peak-limit");
  CHECK((*verdicts)[0].message == "peak 2.00 KiB (2048 bytes) is above 1KiB");
  CHECK((*verdicts)[1].check == "time-growth");
  CHECK((*verdicts)[1].message == "time went from 1000 to 1035, +3.50%; allowed is only +2%");
  CHECK((*verdicts)[2].holds);
  CHECK((*verdicts)[2].message == "overhead +3.50% of a training step is within 50%");
  CHECK((*verdicts)[3].message ==
        "peak went from 1.00 KiB (1024 bytes) to 2.00 KiB (2048 bytes), +1.00 KiB (1024 bytes); "
        "allowed is only +1000B");
}

TEST_CASE("thresholds: the measures of a model, each at its limit and one above") {
  const ModelMeasures model{Bytes(1000), Bytes(200), Bytes(900), Bytes(800), Bytes(60), 2};
  const struct {
    const char* limit;
    bool holds;
  } kRows[] = {{"peak>1000", true},      {"peak>999", false},       {"total>1200", true},
               {"total>1199", false},    {"activations>900", true}, {"activations>899", false},
               {"saved>800", true},      {"saved>799", false},      {"parameters>60", true},
               {"parameters>59", false}, {"warnings>2", true},      {"warnings>1", false}};
  for (const auto& row : kRows) {
    CAPTURE(row.limit);
    const auto verdicts =
        JudgeThresholds({*ParseThreshold(row.limit, LimitSubject::kModel)}, model);
    CHECK(verdicts.front().holds == row.holds);
    CHECK(AllHold(verdicts) == row.holds);
  }
}

}  // namespace ckplan
