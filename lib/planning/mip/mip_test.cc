#include "lib/planning/mip/mip.h"

#include <doctest/doctest.h>

#include <cmath>
#include <new>
#include <stop_token>
#include <string>

#include "lib/base/rng.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

MipOutcome Solved(const MipModel& model, const MipLimits& limits = {},
                  const MipOptions& options = {}) {
  return SolveMip(model, limits, options).value();
}

// Makes a program of binary columns with `rows` knapsack rows, each of which allows half of its
// total weight.
MipModel RandomKnapsack(Rng& rng, int columns, int rows) {
  MipModel model;
  for (int j = 0; j < columns; ++j) {
    model.AddColumn(
        {.cost = -static_cast<double>(rng.Between(10, 99)), .upper = 1, .is_integer = true});
  }
  for (int i = 0; i < rows; ++i) {
    std::vector<MipEntry> entries;
    double sum = 0;
    for (int j = 0; j < columns; ++j) {
      entries.push_back({j, static_cast<double>(rng.Between(10, 99))});
      sum += entries.back().coefficient;
    }
    model.AddRow(-kMipInfinity, std::floor(sum / 2), entries);
  }
  return model;
}

// Makes a program with few columns and values, and rows of any sign and kind. Many are infeasible.
MipModel RandomModel(Rng& rng) {
  MipModel model;
  const int64_t columns = rng.Between(1, 6);
  for (int64_t j = 0; j < columns; ++j) {
    const auto lower = static_cast<double>(rng.Between(-2, 1));
    model.AddColumn({.cost = static_cast<double>(rng.Between(-9, 9)),
                     .lower = lower,
                     .upper = lower + static_cast<double>(rng.Between(0, 3)),
                     .is_integer = true});
  }
  for (int64_t rows = rng.Between(0, 5); rows > 0; --rows) {
    std::vector<MipEntry> entries;
    for (int64_t k = rng.Between(1, 8); k > 0; --k) {  // A column may come twice.
      entries.push_back(
          {static_cast<int>(rng.Between(0, columns - 1)), static_cast<double>(rng.Between(-5, 5))});
    }
    const auto side = static_cast<double>(rng.Between(-6, 6));
    const bool is_equation = rng.Chance(20);
    const bool is_upper = rng.Chance(50);
    model.AddRow(is_equation || !is_upper ? side : -kMipInfinity,
                 is_equation || is_upper ? side : kMipInfinity, entries);
  }
  return model;
}

// Returns the least cost over all whole points between the bounds; infinite if none is feasible.
double BruteForce(const MipModel& model) {
  const std::vector<MipColumn>& columns = model.columns();
  std::vector<double> values;
  for (const MipColumn& column : columns) values.push_back(column.lower);
  double best = kMipInfinity;
  while (true) {
    if (model.IsFeasible(values)) best = std::min(best, model.Objective(values));
    size_t j = 0;
    while (j < columns.size() && values[j] == columns[j].upper) {
      values[j] = columns[j].lower;
      ++j;
    }
    if (j == columns.size()) return best;
    ++values[j];
  }
}

void CheckSame(const MipOutcome& a, const MipOutcome& b) {
  CHECK(a.status == b.status);
  CHECK(a.bound == b.bound);
  CHECK(a.values == b.values);
  CHECK(a.objective == b.objective);
  CHECK(a.lp_iterations == b.lp_iterations);
}

}  // namespace

TEST_CASE("mip: entries of a column add up, and those that cancel are dropped") {
  MipModel model;
  const int x = model.AddColumn({});
  const int y = model.AddColumn({});
  model.AddRow(0, 1, {{y, 2}, {x, 1}, {y, -2}, {x, 3}});
  const std::vector<MipEntry>& entries = model.rows()[0].entries;
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].column == x);
  CHECK(entries[0].coefficient == 4);
}

TEST_CASE("mip: a solution is feasible if it satisfies bounds, rows and integers") {
  MipModel model;
  const int x = model.AddColumn({.upper = 3, .is_integer = true});
  const int y = model.AddColumn({.lower = -1, .upper = 1});
  model.AddRow(1, 2, {{x, 1}, {y, 2}});
  CHECK(model.IsFeasible(std::vector<double>{1, 0.5}));
  CHECK(!model.IsFeasible(std::vector<double>{1.5, 0}));
  CHECK(!model.IsFeasible(std::vector<double>{1, 1}));
  CHECK(!model.IsFeasible(std::vector<double>{4, -1}));
}

TEST_CASE("mip: without a solver, an error says what to do" * doctest::skip(HasMipSolver())) {
  const Result<MipOutcome> outcome = SolveMip({}, {});
  REQUIRE(!outcome.ok());
  CHECK(outcome.error().code == ErrorCode::kUnsupported);
  CHECK(outcome.error().message.find("docs/dependencies.md") != std::string::npos);
}

TEST_SUITE_BEGIN("HiGHS" * doctest::skip(!HasMipSolver()));

TEST_CASE("mip: random programs equal brute force, and their relaxation is a bound") {
  Rng rng(1);
  int feasible = 0;
  int infeasible = 0;
  for (int run = 0; run < 400; ++run) {
    CAPTURE(run);
    const MipModel model = RandomModel(rng);
    const double best = BruteForce(model);
    const MipOutcome outcome = Solved(model);
    if (best == kMipInfinity) {
      ++infeasible;
      CHECK(outcome.status == MipStatus::kInfeasible);
      CHECK(outcome.bound == kMipInfinity);
      CHECK(!outcome.values);
      continue;
    }
    ++feasible;
    CHECK(outcome.status == MipStatus::kOptimal);
    CHECK(outcome.objective == best);
    CHECK(outcome.bound == doctest::Approx(best));
    REQUIRE(outcome.values);
    CHECK(model.IsFeasible(*outcome.values));
    const MipOutcome relaxed = Solved(model, {}, {.relax = true});
    CHECK(relaxed.status == MipStatus::kOptimal);
    CHECK(relaxed.objective <= best + kMipTolerance);
    CHECK(relaxed.bound == relaxed.objective);
  }
  CHECK(feasible > 100);
  CHECK(infeasible > 50);
}

TEST_CASE("mip: knapsacks equal brute force") {
  Rng rng(2);
  for (int run = 0; run < 100; ++run) {
    CAPTURE(run);
    const MipModel model = RandomKnapsack(rng, 10, 2);
    CHECK(Solved(model).objective == BruteForce(model));
  }
}

TEST_CASE("mip: a work limit ends every solve at the same place") {
  Rng rng(3);
  const MipModel model = RandomKnapsack(rng, 50, 10);
  int64_t last = -1;
  for (const int64_t iterations : {0, 100, 300}) {
    CAPTURE(iterations);
    const MipOutcome outcome = Solved(model, {.lp_iterations = iterations});
    CHECK(outcome.status == MipStatus::kStopped);
    CHECK(outcome.lp_iterations >= last);
    CHECK(outcome.bound <= outcome.objective);
    CheckSame(outcome, Solved(model, {.lp_iterations = iterations}));
    last = outcome.lp_iterations;
  }
  CHECK(last > 0);
  const MipOutcome of_nodes = Solved(model, {.nodes = 1});
  CHECK(of_nodes.status == MipStatus::kStopped);
  CheckSame(of_nodes, Solved(model, {.nodes = 1}));
}

TEST_CASE("mip: a work limit ends a linear program, which then proves nothing") {
  Rng rng(4);
  const MipModel model = RandomKnapsack(rng, 50, 10);
  const MipOutcome outcome = Solved(model, {.lp_iterations = 3}, {.relax = true});
  CHECK(outcome.status == MipStatus::kStopped);
  CHECK(outcome.bound == -kMipInfinity);
}

TEST_CASE("mip: a gap ends a search early, and the bound says by how much") {
  Rng rng(5);
  const MipModel model = RandomKnapsack(rng, 30, 3);
  const MipOutcome outcome = Solved(model, {.relative_gap = 0.1});
  CHECK(outcome.status == MipStatus::kOptimal);
  CHECK(outcome.objective - outcome.bound <= 0.1 * std::abs(outcome.objective));
}

TEST_CASE("mip: a start is kept if there is no time for a better one") {
  Rng rng(6);
  const MipModel model = RandomKnapsack(rng, 50, 10);
  const MipOutcome found = Solved(model, {.lp_iterations = 300});
  REQUIRE(found.values);
  const MipOutcome started = Solved(model, {.lp_iterations = 0}, {.start = &*found.values});
  REQUIRE(started.values);
  CHECK(started.objective <= found.objective);
  const std::vector<double> all(50, 1.0);  // This takes twice as much as fits.
  const MipOutcome misled = Solved(model, {.lp_iterations = 300}, {.start = &all});
  REQUIRE(misled.values);
  CHECK(model.IsFeasible(*misled.values));
}

TEST_CASE("mip: the caller is asked about solutions near the bound, and may end the search") {
  Rng rng(8);
  const MipModel model = RandomKnapsack(rng, 30, 3);
  const MipOutcome proven = Solved(model);
  std::vector<std::vector<double>> asked;
  MipOptions options;
  options.doubtful_gap = std::abs(proven.objective);
  options.is_worth_proving = [&](const std::vector<double>& values) {
    asked.push_back(values);
    return true;
  };
  const MipOutcome same = Solved(model, {}, options);
  CHECK(same.status == MipStatus::kOptimal);
  CHECK(same.objective == proven.objective);
  REQUIRE(asked.size() > 1);
  for (size_t i = 0; i < asked.size(); ++i) {
    CHECK(model.IsFeasible(asked[i]));
    CHECK((i == 0 || model.Objective(asked[i]) < model.Objective(asked[i - 1])));
  }
  asked.clear();
  options.is_worth_proving = [&](const std::vector<double>& values) {
    asked.push_back(values);
    return false;
  };
  const MipOutcome ended = Solved(model, {}, options);
  CHECK(ended.status == MipStatus::kStopped);
  CHECK(asked.size() == 1);
  CHECK(ended.objective <= model.Objective(asked[0]));
  CHECK(ended.bound <= proven.objective);
  CHECK(ended.work < proven.work);
  options.is_worth_proving = [](const std::vector<double>&) -> bool { throw std::bad_alloc(); };
  CHECK_THROWS_AS(Solved(model, {}, options), std::bad_alloc);
  options.doubtful_gap = -1;  // No solution is that near.
  CHECK(Solved(model, {}, options).status == MipStatus::kOptimal);
}

TEST_CASE("mip: the caller sees each better solution, and ends the search with one") {
  Rng rng(7);
  const MipModel model = RandomKnapsack(rng, 40, 20);
  std::vector<double> costs;
  double enough = -kMipInfinity;
  MipOptions options;
  options.doubtful_gap = kMipInfinity;  // This is ignored, since `is_worth_proving` is not set.
  options.is_solution_enough = [&](const std::vector<double>& values) {
    CHECK(model.IsFeasible(values));
    costs.push_back(model.Objective(values));
    return costs.back() <= enough;
  };
  const MipOutcome whole = Solved(model, {}, options);
  REQUIRE(whole.status == MipStatus::kOptimal);
  REQUIRE(costs.size() > 1);
  for (size_t i = 1; i < costs.size(); ++i) CHECK(costs[i] < costs[i - 1]);
  CHECK(costs.back() == whole.objective);
  enough = costs.front();
  costs.clear();
  const MipOutcome ended = Solved(model, {}, options);
  CHECK(ended.status == MipStatus::kStopped);
  CHECK(costs.size() == 1);
  CHECK(ended.objective <= enough);
  CHECK(ended.work < whole.work);
  options.is_solution_enough = [](const std::vector<double>&) -> bool { throw std::bad_alloc(); };
  CHECK_THROWS_AS(Solved(model, {}, options), std::bad_alloc);
}

TEST_CASE("mip: a search ends once the caller accepts its bound, with a bound that holds") {
  Rng rng(7);
  const MipModel model = RandomKnapsack(rng, 40, 20);
  const MipOutcome whole = Solved(model);
  REQUIRE(whole.status == MipStatus::kOptimal);
  const double enough = whole.objective * 1.05;  // Costs are negative.
  MipOptions options;
  options.is_bound_enough = [&](double bound) { return bound > enough; };
  const MipOutcome ended = Solved(model, {}, options);
  CHECK(ended.status == MipStatus::kStopped);
  CHECK(ended.bound > enough);
  CHECK(ended.bound <= whole.objective + 1);
  CHECK(ended.work < whole.work);
}

TEST_CASE("mip: a stop ends a solve with the best so far") {
  Rng rng(7);
  const MipModel model = RandomKnapsack(rng, 50, 10);
  std::stop_source source;
  int polls = 0;
  const StopScope scope(source.get_token(), [&](int64_t) {
    if (++polls == 5) source.request_stop();
  });
  const MipOutcome outcome = Solved(model);
  CHECK(outcome.status == MipStatus::kStopped);
  CHECK(outcome.bound <= outcome.objective);
  CHECK(polls < 20);
}

TEST_CASE("mip: a program that cannot be solved gives an error, or an outcome that says so") {
  MipModel unbounded;
  unbounded.AddColumn({.cost = -1, .is_integer = true});
  CHECK(SolveMip(unbounded, {}).error().code == ErrorCode::kInvalidInput);
  MipModel nan;
  nan.AddColumn({.cost = std::nan("")});
  CHECK(SolveMip(nan, {}).error().code == ErrorCode::kInvalidInput);
  MipModel crossed;
  crossed.AddColumn({.lower = 1, .upper = 0, .is_integer = true});
  CHECK(Solved(crossed).status == MipStatus::kInfeasible);
  const MipOutcome empty = Solved(MipModel());
  CHECK(empty.status == MipStatus::kOptimal);
  CHECK(empty.objective == 0);
}

TEST_SUITE_END();

}  // namespace ckplan
