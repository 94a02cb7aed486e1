// Reads a model at many sizes of one dimension, without expanding its file each time.
//
// The numbers of a training step (bytes, FLOPs, elements) are linear in a batch, and linear or
// quadratic in the length of a sequence. A few have a kink: a batch reads at most the whole table
// of an embedding. Readings of one structure give the formulas, and more readings than a formula
// needs confirm them. From then on, sizes are derived in exact integers, up to a little above the
// largest one read, and costs are rounded from derived work, as in reading. Until then, and if the
// model refuses a size, each size is read.
//
// A model may still be another one at some sizes, for example where its batch equals its number of
// channels. So read what you report, and compare: see FindFit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// Returns a function that reads this model. All requests to it must be for the same file, but if
// anything other than the size changes, it starts anew. Not thread-safe.
ReadAtSize SizeReaderOf(std::string path);

class SizeReader {
 public:
  explicit SizeReader(std::string path) : path_(std::move(path)) {}

  Result<Source> Read(const PlanRequest& request, const std::string& dim);

 private:
  struct Reading {
    int64_t size = 0;
    std::vector<int64_t> numbers;
  };
  struct Polynomial {  // a + b x + c x x, for a size x.
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
    bool operator==(const Polynomial&) const = default;
  };
  struct Formula {  // The less or the greater of both, which are the same without a kink.
    Polynomial low;
    Polynomial high;
    bool is_least = true;
  };

  void Learn(int64_t size, WholeModel model);
  void FindFormulas();
  std::optional<std::vector<Formula>> FormulasFrom(size_t first) const;
  std::optional<Formula> FormulaOf(size_t number, size_t first) const;
  std::optional<Polynomial> PolynomialFrom(size_t reading, size_t number) const;
  static std::optional<int64_t> ValueAt(int64_t size, const Formula& formula);
  bool CanDerive(int64_t size) const;
  std::optional<WholeModel> Derive(int64_t size) const;

  std::string path_;
  PlanRequest request_;  // With size 0.
  std::string dim_;
  // The last model read, with all numbers 0, and its parts instead of its graph.
  std::optional<WholeModel> structure_;
  TensorGraphParts parts_;
  std::vector<Reading> readings_;  // Those of this structure, in order of size.
  std::vector<Formula> formulas_;  // By number; empty until they are confirmed.
  int64_t smallest_ = 0;           // The size from which they hold.
  bool is_irregular_ = false;      // Nothing is derived.
};

}  // namespace ckplan
