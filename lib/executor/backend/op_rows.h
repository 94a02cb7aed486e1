// A backend's operator table: one row per operator, joined from the tables of the operator
// families.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

// PrepareFunction is a function pointer that returns Result<std::unique_ptr<PreparedOp>>. It fails
// with kUnsupported if there is no kernel for the spec's attributes, shapes or types.
template <typename PrepareFunction>
struct OpRowOf {
  std::string_view type;
  PrepareFunction prepare = nullptr;
  std::string_view limits = {};  // The part of the operator that this backend does not support.
};

template <typename Row>
class OpTable {
 public:
  using Family = std::span<const Row> (*)();

  explicit OpTable(std::span<const Family> families) {
    for (const Family family : families) {
      const std::span<const Row> own = family();
      rows_.insert(rows_.end(), own.begin(), own.end());
    }
    std::sort(rows_.begin(), rows_.end(),
              [](const Row& a, const Row& b) { return a.type < b.type; });
  }

  // Rows are in alphabetical order.
  std::span<const Row> rows() const { return rows_; }

  // Returns null for an unknown operator.
  const Row* Find(std::string_view type) const {
    const auto found =
        std::lower_bound(rows_.begin(), rows_.end(), type,
                         [](const Row& row, std::string_view t) { return row.type < t; });
    return found == rows_.end() || found->type != type ? nullptr : &*found;
  }

  // Implements Backend::Operators.
  std::vector<OpSupport> Support() const {
    std::vector<OpSupport> support;
    for (const Row& row : rows_) {
      const FamilyRow* family = FindFamilyRow(row.type);
      support.push_back({std::string(row.type), HasGradient(row.type),
                         JoinLimits(family == nullptr ? "" : family->limits, row.limits)});
    }
    return support;
  }

 private:
  std::vector<Row> rows_;
};

// Returns a new operator as the result of a PrepareFunction.
template <typename Op, typename... Arguments>
Result<std::unique_ptr<PreparedOp>> Prepared(Arguments&&... arguments) {
  std::unique_ptr<PreparedOp> op = std::make_unique<Op>(std::forward<Arguments>(arguments)...);
  return Result<std::unique_ptr<PreparedOp>>(std::move(op));  // Without std::move, nvcc would copy.
}

}  // namespace ckplan
