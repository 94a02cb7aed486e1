#include "lib/planning/plan/threshold.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace ckplan {
namespace {

// Limits, with the text that people would have typed.
Threshold AtMost(Metric metric, int64_t bytes) {
  const std::string text = std::string(NameOf(metric)) + ">" + std::to_string(bytes);
  return {text, metric, false, Threshold::Unit::kBytes, bytes};
}

Threshold AtMostPercent(Metric metric, const std::string& percent) {
  const std::string text = std::string(NameOf(metric)) + ">" + percent + "%";
  return {text, metric, false, Threshold::Unit::kPercent, std::llround(std::stod(percent) * 1e6)};
}

Threshold GrowthPercent(Metric metric, int64_t percent) {
  const std::string text = std::string(NameOf(metric)) + ":+" + std::to_string(percent) + "%";
  return {text, metric, true, Threshold::Unit::kPercent, percent * 1'000'000};
}

Threshold GrowthBytes(Metric metric, int64_t bytes) {
  const std::string text = std::string(NameOf(metric)) + ":+" + std::to_string(bytes) + "B";
  return {text, metric, true, Threshold::Unit::kBytes, bytes};
}

Threshold Count(Metric metric, int64_t count) {
  const std::string text = std::string(NameOf(metric)) + ">" + std::to_string(count);
  return {text, metric, false, Threshold::Unit::kCount, count};
}

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

bool Holds(const Threshold& threshold, const PlanFigures& figures, const PlanFigures& old) {
  OlderPlan older;
  older.plan.emplace();
  older.plan->figures = old;
  return EvaluateThresholds({threshold}, figures, older).front().holds;
}

}  // namespace

TEST_CASE("threshold: a limit itself is within it, one more is not") {
  const PlanFigures old = FiguresOf(1000, 0);
  CHECK(Holds(AtMost(Metric::kPeak, 1000), FiguresOf(1000, 0), old));
  CHECK_FALSE(Holds(AtMost(Metric::kPeak, 1000), FiguresOf(1001, 0), old));
  PlanFigures share = FiguresOf(600, 0);
  share.baseline_peak = Bytes(1000);
  CHECK(Holds(AtMostPercent(Metric::kPeak, "60"), share, old));
  share.peak = Bytes(601);
  CHECK_FALSE(Holds(AtMostPercent(Metric::kPeak, "60"), share, old));
  CHECK(Holds(AtMostPercent(Metric::kPeak, "60.1"), share, old));
  CHECK(Holds(AtMost(Metric::kArena, 1000), FiguresOf(999, 0), old));
  CHECK_FALSE(Holds(AtMost(Metric::kArena, 1000), FiguresOf(1000, 0), old));
  CHECK(Holds(AtMost(Metric::kTotal, 5123), FiguresOf(1000, 0), old));
  CHECK_FALSE(Holds(AtMost(Metric::kTotal, 5122), FiguresOf(1000, 0), old));
  CHECK(Holds(GrowthPercent(Metric::kTotal, 1), FiguresOf(1051, 0), old));  // 1% of 5,123 is 51.23.
  CHECK_FALSE(Holds(GrowthPercent(Metric::kTotal, 1), FiguresOf(1052, 0), old));
  CHECK(Holds(AtMostPercent(Metric::kOverhead, "5"), FiguresOf(1, 50), old));
  CHECK_FALSE(Holds(AtMostPercent(Metric::kOverhead, "5"), FiguresOf(1, 51), old));
  CHECK(Holds(AtMostPercent(Metric::kOverhead, "0.1"), FiguresOf(1, 1), old));
  CHECK_FALSE(Holds(AtMostPercent(Metric::kOverhead, "0.1"), FiguresOf(1, 2), old));
  CHECK(Holds(GrowthPercent(Metric::kPeak, 1), FiguresOf(1010, 0), old));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kPeak, 1), FiguresOf(1011, 0), old));
  CHECK(Holds(GrowthPercent(Metric::kPeak, 0), FiguresOf(900, 0), old));
  CHECK(Holds(GrowthBytes(Metric::kPeak, 1024), FiguresOf(2024, 0), old));
  CHECK_FALSE(Holds(GrowthBytes(Metric::kPeak, 1024), FiguresOf(2025, 0), old));
  CHECK(Holds(GrowthBytes(Metric::kTotal, 10), FiguresOf(1010, 0), old));
  CHECK_FALSE(Holds(GrowthBytes(Metric::kTotal, 10), FiguresOf(1011, 0), old));
  CHECK(Holds(GrowthBytes(Metric::kArena, 0), FiguresOf(900, 0), old));
  CHECK(Holds(GrowthPercent(Metric::kTime, 2), FiguresOf(1, 20), old));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kTime, 2), FiguresOf(1, 21), old));
  CHECK(Holds(GrowthPercent(Metric::kTime, 2), FiguresOf(1, 70), FiguresOf(1, 50)));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kTime, 2), FiguresOf(1, 72), FiguresOf(1, 50)));
}

TEST_CASE("threshold: the largest figures do not overflow") {
  PlanFigures largest;
  largest.peak = largest.arena = largest.baseline_peak = Bytes::Max();
  largest.forward_cost = largest.backward_cost = largest.overhead = Cost::Max();
  largest.constants = {Bytes::Max(), Bytes::Max(), Bytes::Max()};
  largest.optimizer_state = Bytes::Max();
  CHECK(Holds(GrowthPercent(Metric::kTotal, 0), largest, largest));
  CHECK_FALSE(Holds(AtMost(Metric::kTotal, int64_t{64} << 50), largest, largest));
  CHECK(Holds(AtMostPercent(Metric::kPeak, "100"), largest, largest));
  CHECK_FALSE(Holds(AtMostPercent(Metric::kPeak, "99.9"), largest, largest));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kTotal, 1000), largest, FiguresOf(1, 0)));
  CHECK(Holds(GrowthPercent(Metric::kTime, 0), largest, largest));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kTime, 1000), largest, FiguresOf(1, 0)));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kPeak, 1000), largest, FiguresOf(1, 0)));
  CHECK_FALSE(Holds(GrowthBytes(Metric::kTotal, int64_t{64} << 50), largest, FiguresOf(1, 0)));
  CHECK(Holds(GrowthBytes(Metric::kTotal, 0), FiguresOf(1, 0), largest));
  CHECK(Holds(AtMostPercent(Metric::kOverhead, "50"), largest, largest));
  CHECK_FALSE(Holds(AtMostPercent(Metric::kOverhead, "49.9"), largest, largest));
}

TEST_CASE("threshold: a curve has grown by what it adds more within the same peak") {
  PlanFigures old;
  old.forward_cost = Cost(400);
  old.backward_cost = Cost(600);
  old.curve = {{Bytes(10), Cost(300)}, {Bytes(20), Cost(100)}, {Bytes(40), Cost(0)}};
  PlanFigures now = old;
  now.curve = {{Bytes(8), Cost(400)}, {Bytes(20), Cost(110)}, {Bytes(30), Cost(0)}};
  // Within 10 bytes it adds 100 more, within 20 bytes 10 more, and from 30 bytes on less.
  CHECK(Holds(GrowthPercent(Metric::kCurve, 10), now, old));
  CHECK_FALSE(Holds(GrowthPercent(Metric::kCurve, 9), now, old));
  CHECK(Holds(GrowthPercent(Metric::kCurve, 0), old, old));
  // A peak that no plan reaches any more is no matter of percent.
  now.curve.erase(now.curve.begin());
  CHECK_FALSE(Holds(GrowthPercent(Metric::kCurve, 1000), now, old));
  const std::vector<CurveChange> rows = CompareCurves(old.curve, now.curve);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].older == Cost(300));
  CHECK_FALSE(rows[0].newer);
  CHECK(rows[2].peak == Bytes(30));
  CHECK(rows[2].older == Cost(100));
  CHECK(rows[2].newer == Cost(0));
}

TEST_CASE("threshold: growth from nothing is above every percentage") {
  CHECK_FALSE(Holds(GrowthPercent(Metric::kPeak, 1000), FiguresOf(1, 0), FiguresOf(0, 0)));
  CHECK(Holds(GrowthPercent(Metric::kPeak, 0), FiguresOf(0, 0), FiguresOf(0, 0)));
}

TEST_CASE("threshold: a plan that is new has grown from nothing that limits it") {
  const auto verdicts = EvaluateThresholds(
      {GrowthPercent(Metric::kPeak, 1), AtMost(Metric::kPeak, 1), GrowthPercent(Metric::kTime, 0)},
      FiguresOf(2, 0), OlderPlan{std::nullopt, "there is none"});
  CHECK(verdicts[0].holds);
  CHECK(verdicts[0].message == "there is none");
  CHECK_FALSE(verdicts[1].holds);
  CHECK(verdicts[2].holds);
}

TEST_CASE("threshold: a verdict tells the figure, the limit, and a kind without numbers") {
  const PlanFigures figures = FiguresOf(2048, 35);
  OlderPlan older;
  older.plan.emplace();
  older.plan->figures = FiguresOf(1024, 0);
  const auto verdicts =
      EvaluateThresholds({AtMost(Metric::kPeak, 1024), GrowthPercent(Metric::kTime, 2),
                          AtMostPercent(Metric::kOverhead, "50"), GrowthBytes(Metric::kPeak, 1000)},
                         figures, older);
  REQUIRE(verdicts.size() == 4);
  CHECK(verdicts[0].check == "peak-limit");
  CHECK(verdicts[0].message == "peak 2.00 KiB (2048 bytes) is above 1024");
  CHECK(verdicts[1].check == "time-growth");
  CHECK(verdicts[1].message == "time went from 1000 to 1035, +3.50%; above the limit of +2%");
  CHECK(verdicts[2].holds);
  CHECK(verdicts[2].message == "overhead +3.50% of a training step is within 50%");
  CHECK(verdicts[3].message ==
        "peak went from 1.00 KiB (1024 bytes) to 2.00 KiB (2048 bytes), +1.00 KiB (1024 bytes); "
        "above the limit of +1000B");
}

TEST_CASE("threshold: the measures of a model, each at its limit and one above") {
  const ModelMeasures model{Bytes(1000), Bytes(200), Bytes(900), Bytes(800), Bytes(60), 2};
  const struct {
    Threshold limit;
    bool holds;
  } kRows[] = {
      {AtMost(Metric::kPeak, 1000), true},       {AtMost(Metric::kPeak, 999), false},
      {AtMost(Metric::kTotal, 1200), true},      {AtMost(Metric::kTotal, 1199), false},
      {AtMost(Metric::kActivations, 900), true}, {AtMost(Metric::kActivations, 899), false},
      {AtMost(Metric::kSaved, 800), true},       {AtMost(Metric::kSaved, 799), false},
      {AtMost(Metric::kParameters, 60), true},   {AtMost(Metric::kParameters, 59), false},
      {Count(Metric::kWarnings, 2), true},       {Count(Metric::kWarnings, 1), false}};
  for (const auto& row : kRows) {
    CAPTURE(row.limit.text);
    const auto verdicts = EvaluateThresholds({row.limit}, model);
    CHECK(verdicts.front().holds == row.holds);
    CHECK(AllHold(verdicts) == row.holds);
  }
}

}  // namespace ckplan
