#include "cli/ckplan/fit_text.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {
namespace {

Fit FitOf(std::string dim, DimSizes bound, std::string unit = "ns") {
  Fit fit;
  fit.dim = std::move(dim);
  fit.plan.dims = std::move(bound);
  fit.plan.cost_unit = std::move(unit);
  return fit;
}

TEST_CASE("fit rate: names of dimensions say whether samples, tokens or sizes are counted") {
  const struct {
    std::string dim;
    DimSizes bound;
    const char* name;
    const char* unit;
    int64_t count_of_one;
  } kRows[] = {
      {"N", {}, "samples/s", "samples/s", 1},
      {"batch_size", {}, "samples/s", "samples/s", 1},
      {"N", {{"H", 224}, {"W", 224}}, "samples/s", "samples/s", 1},
      {"N", {{"S", 512}}, "tokens/s", "tokens/s", 512},
      {"batch", {{"Sequence_Length", 128}}, "tokens/s", "tokens/s", 128},
      {"S", {{"N", 8}}, "tokens/s", "tokens/s", 8},
      {"sequence", {{"batch", 4}}, "tokens/s", "tokens/s", 4},
      {"L", {{"N", 8}}, "tokens/s", "tokens/s", 8},
      // The batch is not known.
      {"S", {}, "S/s", "1/s", 1},
      // Two sequences, such as those of a translation.
      {"S", {{"N", 8}, {"T", 16}}, "S/s", "1/s", 1},
      {"N", {{"S", 8}, {"T", 16}}, "samples/s", "samples/s", 1},
      // Other dimensions are not samples.
      {"H", {{"N", 8}}, "H/s", "1/s", 1},
      {"nodes", {{"edges", 8}}, "nodes/s", "1/s", 1},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.name);
    CAPTURE(row.dim);
    const FitRate rate = RateOf(FitOf(row.dim, row.bound));
    CHECK(rate.name == row.name);
    CHECK(rate.unit == row.unit);
    CHECK(rate.count_of_one == row.count_of_one);
  }
  CHECK(RateOf(FitOf("N", {}, "1")).name == "samples/cost");
  CHECK(RateOf(FitOf("S", {{"N", 2}}, "1")).unit == "tokens/cost");
  CHECK(RateOf(FitOf("H", {}, "1")).unit == "1/cost");
}

TEST_CASE("fit rate: tokens are samples times the length of each") {
  FitRow row;
  row.size = 32;
  row.step = Cost(900'000'000);
  row.overhead = Cost(100'000'000);  // One second together.
  CHECK(Throughput(FitOf("N", {}), row) == doctest::Approx(32));
  CHECK(Throughput(FitOf("N", {{"S", 512}}), row) == doctest::Approx(32 * 512));
  CHECK(Throughput(FitOf("S", {{"N", 4}}), row) == doctest::Approx(4 * 32));
  CHECK(Throughput(FitOf("S", {}), row) == doctest::Approx(32));
  CHECK(Throughput(FitOf("N", {}, "1"), row) == doctest::Approx(32e-9));
}

}  // namespace
}  // namespace ckplan
