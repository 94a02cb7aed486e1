#include "cli/common/request_grid.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

Result<RequestGrid> GridOf(std::vector<std::string> arguments) {
  CommandLine line("ckplan compare", "", "");
  RequestFlags flags;
  flags.Add(line, RequestFlags::Group::kPlanning);
  flags.Add(line, RequestFlags::Group::kReading);
  const auto outcome = line.Parse(std::move(arguments));
  if (!outcome.ok()) return outcome.error();
  return ReadGrid(flags);
}

TEST_CASE("request grid: without lists it has one request, which is the one that was typed") {
  const Result<RequestGrid> none = GridOf({});
  REQUIRE(none.ok());
  CHECK(none->request.implied ==
        std::set<std::string>{"autograd", "fused", "optimizer", "restored"});
  CHECK(none->sizes == std::vector<DimSizes>{{}});
  CHECK(none->budget_field.empty());
  REQUIRE(none->budgets.size() == 1);
  CHECK(none->budgets.front().text.empty());
  CHECK(none->With(none->budgets.front(), none->request) == none->request);

  const Result<RequestGrid> one = GridOf({"-D", "N=8", "--budget", "60%"});
  REQUIRE(one.ok());
  CHECK(one->sizes == std::vector<DimSizes>{{{"N", 8}}});
  CHECK(one->budget_field == "budget");
  REQUIRE(one->budgets.size() == 1);
  CHECK(one->budgets.front().text == "60%");
  CHECK(one->With(one->budgets.front(), one->request) == one->request);
}

TEST_CASE("request grid: lists are in the order typed, and have nothing twice") {
  const Result<RequestGrid> grid =
      GridOf({"-D", "N=16,8,16", "-D", "T=2,1", "--budget-total", "90%,2MiB,90%", "--align", "4"});
  REQUIRE(grid.ok());
  CHECK(grid->sizes == std::vector<DimSizes>{{{"N", 16}, {"T", 2}},
                                             {{"N", 16}, {"T", 1}},
                                             {{"N", 8}, {"T", 2}},
                                             {{"N", 8}, {"T", 1}}});
  CHECK(grid->budget_field == "total_budget");
  REQUIRE(grid->budgets.size() == 2);
  CHECK(grid->budgets[0].budget == Budget{Budget::Kind::kPercent, Bytes(0), 90});
  CHECK(grid->budgets[1].text == "2MiB");
  CHECK(grid->budgets[1].budget == Budget::Of(Bytes(2 << 20)));
  CHECK(grid->request.dims == grid->sizes.front());
  CHECK(grid->request.total_budget == grid->budgets.front().budget);

  const PlanRequest other = grid->With(grid->budgets[1], grid->With(grid->sizes[3]));
  CHECK(other.dims == DimSizes{{"N", 8}, {"T", 1}});
  CHECK(other.total_budget == Budget::Of(Bytes(2 << 20)));
  CHECK_FALSE(other.budget.is_given());
  CHECK(other.align_bytes == 4);
}

TEST_CASE("request grid: every element of a list is judged") {
  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } kRows[] = {
      {{"--budget", "40%,60G"}, "--budget: \"60G\" is not understood"},
      {{"--budget", "40%,,60%"}, "--budget: \"\" is not understood"},
      {{"--budget-total", "40%,min"}, "--budget-total: \"min\" is not understood"},
      {{"--added-time", "5%,x"}, "--added-time: \"x\" is not a percentage"},
      {{"-D", "N=8,-1"}, "--dim N: \"-1\" is not understood"},
      {{"-b", "40%,60%", "--added-time", "5%"}, "--budget and --added-time cannot be combined"},
      {{"-D", "A=1,2,3,4,5,6,7,8,9,10", "-D", "B=1,2,3,4,5,6,7,8,9,10", "-D",
        "C=1,2,3,4,5,6,7,8,9,10,11"},
       "-D: more than 1000 combinations of sizes"},
  };
  for (const auto& row : kRows) {
    const Result<RequestGrid> grid = GridOf(row.arguments);
    REQUIRE_FALSE(grid.ok());
    CAPTURE(grid.error().message);
    CHECK(grid.error().message.find(row.part) != std::string::npos);
    CHECK(grid.error().code == ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace ckplan
