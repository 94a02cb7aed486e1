#include "lib/problem/ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

Error Mismatch(const OpSpec& spec) {
  return InvalidOp(spec, fmt::format("its operands are {} and {}, which cannot be multiplied",
                                     TextOf(spec.input(0).dims), TextOf(spec.input(1).dims)));
}

Result<Dims> BroadcastLeading(const OpSpec& spec, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (const Dims* own : {&a, &b}) {
    const size_t lacking = dims.size() - own->size();
    for (size_t i = 0; i < own->size(); ++i) {
      int64_t& dim = dims[i + lacking];
      if (dim != 1 && (*own)[i] != 1 && dim != (*own)[i]) return Mismatch(spec);
      if ((*own)[i] != 1) dim = (*own)[i];
    }
  }
  return dims;
}

// A vector on the left counts as a row, a vector on the right as a column. The output lacks the
// axis that the vector lacks.
Result<Done> CheckMatMulOutput(const OpSpec& spec, const MatMulShape& shape) {
  Dims expected = shape.leading;
  if (spec.input(0).dims.size() > 1) expected.push_back(shape.m);
  if (spec.input(1).dims.size() > 1) expected.push_back(shape.n);
  return RequireDims(spec, spec.output(0), "its output", expected);
}

Result<MatMulShape> ReadMatMul(const OpSpec& spec) {
  Dims a = spec.input(0).dims;
  Dims b = spec.input(1).dims;
  if (a.empty() || b.empty()) return Mismatch(spec);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  MatMulShape shape;
  shape.m = a[a.size() - 2];
  shape.k = a.back();
  shape.n = b.back();
  if (b[b.size() - 2] != shape.k) return Mismatch(spec);
  shape.a_leading.assign(a.begin(), a.end() - 2);
  shape.b_leading.assign(b.begin(), b.end() - 2);
  CKPLAN_ASSIGN_OR_RETURN(shape.leading, BroadcastLeading(spec, shape.a_leading, shape.b_leading));
  CKPLAN_RETURN_IF_ERROR(CheckMatMulOutput(spec, shape));
  if (Product(shape.b_leading) != 1) return shape;
  shape.m *= Product(shape.a_leading);
  shape.a_leading.clear();
  shape.b_leading.clear();
  shape.leading.clear();
  return shape;
}

Result<MatMulAddend> ReadAddend(const OpSpec& spec, const MatMulShape& shape) {
  MatMulAddend addend;
  const Operand& operand = spec.input(2);
  if (!operand.is_present) return addend;
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, operand, "its third input"));
  addend.is_present = true;
  addend.factor = static_cast<float>(spec.Float("beta", 1));
  const Dims& dims = operand.dims;
  if (!dims.empty()) addend.columns = dims.back();
  if (dims.size() > 1) addend.rows = dims[dims.size() - 2];
  const bool fits = dims.size() <= 2 && (addend.rows == 1 || addend.rows == shape.m) &&
                    (addend.columns == 1 || addend.columns == shape.n);
  if (fits) return addend;
  return InvalidOp(spec, fmt::format("its third input is {}, which cannot be broadcast to [{},{}]",
                                     TextOf(dims), shape.m, shape.n));
}

Result<MatMulShape> ReadGemm(const OpSpec& spec) {
  const Dims& a = spec.input(0).dims;
  const Dims& b = spec.input(1).dims;
  if (a.size() != 2 || b.size() != 2) return Mismatch(spec);
  MatMulShape shape;
  shape.is_a_transposed = spec.Int("transA", 0) != 0;
  shape.is_b_transposed = spec.Int("transB", 0) != 0;
  shape.alpha = static_cast<float>(spec.Float("alpha", 1));
  shape.m = a[shape.is_a_transposed ? 1 : 0];
  shape.k = a[shape.is_a_transposed ? 0 : 1];
  shape.n = b[shape.is_b_transposed ? 0 : 1];
  if (b[shape.is_b_transposed ? 1 : 0] != shape.k) {
    return InvalidOp(spec, fmt::format("its operands are {} and {}, which with transA={} and "
                                       "transB={} cannot be multiplied",
                                       TextOf(a), TextOf(b), shape.is_a_transposed ? 1 : 0,
                                       shape.is_b_transposed ? 1 : 0));
  }
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", {shape.m, shape.n}));
  CKPLAN_ASSIGN_OR_RETURN(shape.addend, ReadAddend(spec, shape));
  return shape;
}

}  // namespace

Result<MatMulShape> ReadMatMulShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2));
  CKPLAN_ASSIGN_OR_RETURN(MatMulShape shape,
                          spec.type == "Gemm" ? ReadGemm(spec) : ReadMatMul(spec));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of rows of its product", shape.m));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of columns of its product", shape.n));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of terms of its sums", shape.k));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of its products", Product(shape.leading)));
  return shape;
}

std::span<const FamilyRow> MatMulFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Gemm", JudgeBy<ReadMatMulShape>},
      {"MatMul", JudgeBy<ReadMatMulShape>},
  };
  return kRows;
}

}  // namespace ckplan
