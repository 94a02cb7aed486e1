#include "lib/problem/ops/rotary.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// The input is [batch, heads, length, features] or [batch, length, heads * features].
Result<RotaryShape> ReadInput(const OpSpec& spec) {
  const std::vector<int64_t>& x = spec.input(0).dims;
  RotaryShape shape;
  if (x.size() == 4) {
    shape.is_head_major = true;
    shape.heads = x[1];
    shape.length = x[2];
    shape.features = x[3];
  } else if (x.size() == 3) {
    shape.heads = spec.Int("num_heads", 0);
    shape.length = x[1];
    if (shape.heads < 1 || x[2] % shape.heads != 0) {
      return InvalidOp(spec, fmt::format("num_heads is {}, which does not divide its {} features",
                                         shape.heads, x[2]));
    }
    shape.features = x[2] / shape.heads;
  } else {
    return InvalidOp(spec, fmt::format("its input has {} axes instead of 3 or 4", x.size()));
  }
  shape.batch = x[0];
  return shape;
}

// Checks that the caches have a row for each position of a table, or for each token.
Result<Done> CheckCaches(const OpSpec& spec, const RotaryShape& shape) {
  const int64_t pairs = shape.rotated / 2;
  const Dims needed =
      shape.cache_rows > 0 ? Dims{shape.cache_rows, pairs} : Dims{shape.batch, shape.length, pairs};
  for (size_t cache = 1; cache <= 2; ++cache) {
    const std::string_view name = cache == 1 ? "its cosine cache" : "its sine cache";
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(cache), name));
    // PyTorch's exporter writes caches that all samples share.
    if (shape.cache_rows == 0 && spec.input(cache).dims == Dims{1, shape.length, pairs} &&
        shape.batch != 1) {
      return UnsupportedOp(spec, fmt::format("{} is one for all samples", name));
    }
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(cache), name, needed));
  }
  return Done{};
}

}  // namespace

Result<RotaryShape> ReadRotaryShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  CKPLAN_ASSIGN_OR_RETURN(RotaryShape shape, ReadInput(spec));
  shape.is_interleaved = spec.Int("interleaved", 0) != 0;
  const int64_t rotated = spec.Int("rotary_embedding_dim", 0);
  shape.rotated = rotated == 0 ? shape.features : rotated;
  if (shape.rotated < 0 || shape.rotated > shape.features || shape.rotated % 2 != 0) {
    return InvalidOp(spec, fmt::format("it turns {} of {} features; an even number is needed",
                                       shape.rotated, shape.features));
  }
  const Operand& positions = spec.input(3);
  if (positions.is_present) {
    if (positions.type != ElementType::kInt64) {
      return UnsupportedOp(spec, "its positions are not int64");
    }
    const Dims tokens = {shape.batch, shape.length};
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, positions, "its list of positions", tokens));
    if (spec.input(1).dims.empty() || spec.input(1).dims[0] < 1) {
      return InvalidOp(spec, "its caches have no rows");
    }
    shape.cache_rows = spec.input(1).dims[0];
  }
  CKPLAN_RETURN_IF_ERROR(CheckCaches(spec, shape));
  return shape;
}

std::span<const FamilyRow> RotaryFamily() {
  static constexpr FamilyRow kRows[] = {{"RotaryEmbedding", JudgeBy<ReadRotaryShape>}};
  return kRows;
}

}  // namespace ckplan
