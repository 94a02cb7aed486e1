// Which values a backward may read: the rule that the planner counts with, as the letters of the
// column `minimal` of lib/model/op_class.def. A test of lib/model holds the two tables together.
#pragma once

#include <string_view>
#include <vector>

#include "lib/ops/op_spec.h"

namespace ckplan::reference {

struct ContractRow {
  std::string_view type;
  std::string_view letters;     // "X | S"
  bool is_elementwise = false;  // An output may stand in place of an input of its size.
};

// Null for an operator that no gradient goes through, or that is not in the table.
const ContractRow* FindContract(std::string_view type);
int CountContracts();
// The operators that are elementwise, among those that no gradient goes through.
bool IsElementwise(std::string_view type);

// Whether an operator has a gradient for a float input that depends on the batch.
bool IsDifferentiable(const OpSpec& spec, size_t input);

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec. `wants`: by position of
// inputs; `is_constant`: likewise; `arrives`: by position of outputs.
void ApplyContract(OpSpec& spec, const std::vector<bool>& wants,
                   const std::vector<bool>& is_constant, const std::vector<bool>& arrives);

}  // namespace ckplan::reference
