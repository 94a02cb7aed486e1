#include "cli/ckplan/fail_on.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

PlanFigures FiguresOf(int64_t peak) {
  PlanFigures figures;
  figures.peak = Bytes(peak);
  return figures;
}

}  // namespace

TEST_CASE("fail-on: every form is read") {
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

TEST_CASE("fail-on: what is for plans is refused of models, and the other way round") {
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

TEST_CASE("fail-on: anything else is refused") {
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

TEST_CASE("fail-on: growth needs an older plan, of time one with the same costs") {
  const Threshold peak = *ParseThreshold("peak:+1%"), time = *ParseThreshold("time:+1%");
  const PlanFigures figures = FiguresOf(1);
  const auto alone = EvaluateFailOn({peak}, figures, {}, OlderPlan{});
  REQUIRE_FALSE(alone.ok());
  CHECK(alone.error().code == ErrorCode::kUsage);
  OlderPlan older;
  older.plan.emplace();
  older.plan->request.cost_model = "paper";
  CHECK(EvaluateFailOn({peak}, figures, {}, older).ok());
  const auto other_costs = EvaluateFailOn({time}, figures, {}, older);
  REQUIRE_FALSE(other_costs.ok());
  CHECK(other_costs.error().code == ErrorCode::kUsage);
  CHECK(other_costs.error().message.find("\"paper\"") != std::string::npos);
  PlanRequest request;
  request.cost_model = "paper";
  CHECK(EvaluateFailOn({time}, figures, request, older).ok());
  request.cost_unit = "ns";
  CHECK_FALSE(EvaluateFailOn({time}, figures, request, older).ok());
}

TEST_CASE("fail-on: a bare number far below the size says what was perhaps meant") {
  const auto judged =
      EvaluateFailOn({*ParseThreshold("peak>16")}, FiguresOf(int64_t{17} << 30), {}, OlderPlan{});
  REQUIRE(judged.ok());
  CHECK(judged->front().message.find("peak 17.00 GiB (18253611008 bytes) is above 16; ") == 0);
  const ModelMeasures model{.peak = Bytes(int64_t{17} << 30)};
  const auto of_model = EvaluateFailOn({*ParseThreshold("peak>16", LimitSubject::kModel)}, model);
  CHECK(of_model.front().message == judged->front().message);
  const auto with_unit = EvaluateFailOn({*ParseThreshold("peak>16GiB")}, FiguresOf(1), {}, {});
  CHECK(with_unit->front().message == "peak 1 B (1 bytes) is within 16GiB");
}

}  // namespace ckplan
