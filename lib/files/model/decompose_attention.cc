#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/decompose.h"

namespace ckplan {

namespace {

using Maker = DecompositionBuilder;
using onnx::TensorProto;

// Queries, keys and values as [batch, length, width], or keys and values as [batch, heads, length,
// size].
struct Operands {
  std::string queries, keys, values;
  std::string mask;
  std::string past_keys, past_values;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  bool is_causal = false;
  bool is_in_heads = false;  // Queries, keys and values are.
};

// Converts [batch, length, heads * size] to [batch, heads, length, size].
std::string InHeads(Maker& m, const std::string& value, int64_t heads, const std::string& what) {
  const std::string parted =
      m.Do("Reshape", {value, m.Ints({0, 0, heads, -1}, what + "_shape")}, what + "_parted");
  return m.Do("Transpose", {parted}, what, {Maker::IntList("perm", {0, 2, 1, 3})});
}

// Adds ONNX's Attention. Returns its result and, if an output needs them, the keys and values by
// head, including past ones.
std::vector<std::string> DoAttention(Maker& m, const Operands& operands) {
  Maker::Attributes attributes = {Maker::Int("q_num_heads", operands.heads),
                                  Maker::Int("kv_num_heads", operands.kv_heads)};
  if (operands.is_causal) attributes.push_back(Maker::Int("is_causal", 1));
  if (FloatAttribute(m.node(), "scale", 0) != 0) m.Copy("scale", &attributes);
  if (FloatAttribute(m.node(), "softcap", 0) != 0) m.Copy("softcap", &attributes);
  const bool has_past = !operands.past_keys.empty();
  std::vector<std::string> what = {"attention"};
  if (has_past) what.insert(what.end(), {"present_keys", "present_values"});
  std::vector<std::string> made =
      m.DoSeveral("Attention",
                  {operands.queries, operands.keys, operands.values, operands.mask,
                   operands.past_keys, operands.past_values},
                  what, attributes);
  if (has_past || (!m.HasOutput(1) && !m.HasOutput(2))) return made;
  for (const auto& [value, name] :
       {std::pair(operands.keys, "present_keys"), std::pair(operands.values, "present_values")}) {
    made.push_back(operands.is_in_heads ? m.Do("Identity", {value}, name)
                                        : InHeads(m, value, operands.kv_heads, name));
  }
  return made;
}

std::vector<std::string> SplitLast(Maker& m, const std::string& value,
                                   const std::vector<int64_t>& sizes, const std::string& what) {
  return m.DoSeveral("Split", {value, m.Ints(sizes, what + "_sizes")},
                     {what + "_q", what + "_k", what + "_v"}, {Maker::Int("axis", -1)});
}

// Converts a numeric mask (the lengths of samples, or a 1 for each key or each query and key) to
// booleans that broadcast to [batch, heads, queries, keys]. Returns false for other forms.
bool ReadMask(Maker& m, size_t input, int64_t batch, int64_t keys, std::string* mask) {
  if (m.Operand(input).empty()) return true;
  if (!m.HasInput(input)) return false;
  const Dims& dims = m.DimsOf(input);
  std::string value = m.Operand(input);
  if (dims == Dims{batch}) {
    if (keys > kMaxFoldedElements) return false;
    ConstantValue places{m.TypeOf(input), {1, keys}, {}, {}};
    for (int64_t i = 0; i < keys; ++i) places.ints.push_back(i);
    const std::string lengths = m.Do("Unsqueeze", {value, m.Ints({1}, "last")}, "lengths");
    value = m.Do("Less", {m.Constant(places, "places"), lengths}, "is_key");
  } else if (dims == Dims{batch, keys} || dims.size() == 3 || dims.size() == 4) {
    value = m.Do("Cast", {value}, "is_key", {Maker::Int("to", TensorProto::BOOL)});
  } else {
    return false;
  }
  if (dims.size() <= 2) value = m.Do("Unsqueeze", {value, m.Ints({1, 2}, "mask_axes")}, "mask");
  if (dims.size() == 3) value = m.Do("Unsqueeze", {value, m.Ints({1}, "mask_axes")}, "mask");
  *mask = value;
  return true;
}

// Uses the bias as mask, if there is no other mask.
bool ReadBias(Maker& m, size_t input, std::string* mask) {
  if (m.Operand(input).empty()) return true;
  if (!mask->empty()) return false;
  *mask = m.Operand(input);
  return true;
}

// Returns the rows of a rotation table for [batch, length] positions from `begin` on.
std::string RowsOf(Maker& m, size_t table, int64_t begin, int64_t batch, int64_t length,
                   const std::string& what) {
  const int64_t width = m.DimsOf(table).back();
  const std::string rows =
      m.Do("Slice",
           {m.Operand(table), m.Ints({begin}, what + "_begin"),
            m.Ints({begin + length}, what + "_end"), m.Ints({0}, what + "_axis")},
           what + "_rows");
  return m.Do("Expand", {rows, m.Ints({batch, length, width}, what + "_shape")}, what);
}

bool IsMatrix(const Maker& m, size_t input) {
  return m.HasInput(input) && m.DimsOf(input).size() == 2;
}

}  // namespace

bool MakeAttention(Maker& m) {
  constexpr size_t kInput = 0, kWeights = 1, kBias = 2, kMask = 3, kPast = 4, kMaskBias = 5;
  if (!m.HasInput(kInput) || !IsMatrix(m, kWeights) || m.DimsOf(kInput).size() != 3) return false;
  Operands operands;
  operands.heads = operands.kv_heads = IntAttribute(m.node(), "num_heads", 0);
  operands.is_causal = IntAttribute(m.node(), "unidirectional", 0) != 0;
  const int64_t all = m.DimsOf(kWeights)[1];
  std::vector<int64_t> sizes = IntsAttribute(m.node(), "qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all / 3);
  const bool is_whole = sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == all;
  if (!is_whole || operands.heads <= 0 || IntAttribute(m.node(), "do_rotary", 0) != 0) return false;
  std::string joint = m.Do("MatMul", {m.Operand(kInput), m.Operand(kWeights)}, "product");
  if (m.HasInput(kBias)) joint = m.Do("Add", {joint, m.Operand(kBias)}, "biased");
  const auto parts = SplitLast(m, joint, sizes, "part");
  operands.queries = parts[0];
  operands.keys = parts[1];
  operands.values = parts[2];
  int64_t keys = m.DimsOf(kInput)[1];
  if (m.HasInput(kPast)) {
    if (m.DimsOf(kPast).size() != 5) return false;
    keys += m.DimsOf(kPast)[3];
    const auto past = m.DoSeveral("Split", {m.Operand(kPast)}, {"past_k", "past_v"},
                                  {Maker::Int("axis", 0), Maker::Int("num_outputs", 2)});
    operands.past_keys = m.Do("Squeeze", {past[0], m.Ints({0}, "past_k_axis")}, "past_keys");
    operands.past_values = m.Do("Squeeze", {past[1], m.Ints({0}, "past_v_axis")}, "past_values");
  }
  if (!ReadMask(m, kMask, m.DimsOf(kInput)[0], keys, &operands.mask)) return false;
  if (!ReadBias(m, kMaskBias, &operands.mask)) return false;
  const auto made = DoAttention(m, operands);
  m.Output(0, made[0]);
  if (m.HasOutput(1)) {
    const std::string k = m.Do("Unsqueeze", {made[1], m.Ints({0}, "k_axis")}, "present_k");
    const std::string v = m.Do("Unsqueeze", {made[2], m.Ints({0}, "v_axis")}, "present_v");
    m.Output(1, m.Do("Concat", {k, v}, "present", {Maker::Int("axis", 0)}));
  }
  return true;
}

bool MakeMultiHeadAttention(Maker& m) {
  constexpr size_t kQueries = 0, kKeys = 1, kValues = 2, kBias = 3, kPadding = 4, kMaskBias = 5;
  constexpr size_t kPastKeys = 6, kPastValues = 7;
  const int64_t heads = IntAttribute(m.node(), "num_heads", 0);
  if (!m.HasInput(kQueries) || heads <= 0) return false;
  Operands operands;
  operands.heads = operands.kv_heads = heads;
  operands.is_causal = IntAttribute(m.node(), "unidirectional", 0) != 0;
  const Dims& q = m.DimsOf(kQueries);
  const bool is_in_heads = m.HasInput(kKeys) && m.DimsOf(kKeys).size() == 4;
  if (q.size() == 5 && m.Operand(kKeys).empty()) {
    // [batch, length, heads, 3, size]
    const auto parts = m.DoSeveral("Split", {m.Operand(kQueries)}, {"q", "k", "v"},
                                   {Maker::Int("axis", 3), Maker::Int("num_outputs", 3)});
    const std::string shape = m.Ints({0, 0, heads * q[4]}, "shape");
    operands.queries = m.Do("Reshape", {parts[0], shape}, "queries");
    operands.keys = m.Do("Reshape", {parts[1], shape}, "keys");
    operands.values = m.Do("Reshape", {parts[2], shape}, "values");
  } else if (q.size() == 3 && m.HasInput(kKeys) && m.HasInput(kValues) &&
             (is_in_heads || m.DimsOf(kKeys).size() == 3)) {
    operands.queries = m.Operand(kQueries);
    operands.keys = m.Operand(kKeys);
    operands.values = m.Operand(kValues);
  } else {
    return false;
  }
  const int64_t width = q.size() == 5 ? heads * q[4] : q[2];
  if (m.HasInput(kBias)) {
    if (m.DimsOf(kBias).size() != 1) return false;
    // Keys given by head already include their bias.
    const int64_t rest = m.DimsOf(kBias)[0] - 2 * width;
    const auto parts = SplitLast(m, m.Operand(kBias), {width, width, rest}, "bias");
    operands.queries = m.Do("Add", {operands.queries, parts[0]}, "biased_q");
    if (!is_in_heads) {
      operands.keys = m.Do("Add", {operands.keys, parts[1]}, "biased_k");
      operands.values = m.Do("Add", {operands.values, parts[2]}, "biased_v");
    }
  }
  int64_t keys = q[1];
  if (m.HasInput(kKeys)) keys = m.DimsOf(kKeys)[is_in_heads ? 2 : 1];
  if (m.HasInput(kPastKeys) && m.HasInput(kPastValues)) {
    if (m.DimsOf(kPastKeys).size() != 4) return false;
    operands.past_keys = m.Operand(kPastKeys);
    operands.past_values = m.Operand(kPastValues);
    keys += m.DimsOf(kPastKeys)[2];
  }
  if (!ReadMask(m, kPadding, q[0], keys, &operands.mask)) return false;
  if (!ReadBias(m, kMaskBias, &operands.mask)) return false;
  operands.is_in_heads = is_in_heads;
  if (is_in_heads) operands.queries = InHeads(m, operands.queries, heads, "queries");
  const auto made = DoAttention(m, operands);
  if (is_in_heads) {
    const std::string joined =
        m.Do("Transpose", {made[0]}, "joined", {Maker::IntList("perm", {0, 2, 1, 3})});
    m.Output(0, m.Do("Reshape", {joined, m.Ints({0, 0, -1}, "out_shape")}, "out"));
  } else {
    m.Output(0, made[0]);
  }
  for (size_t i = 1; i < made.size(); ++i) m.Output(i, made[i]);
  return true;
}

bool MakeGroupQueryAttention(Maker& m) {
  constexpr size_t kQueries = 0, kKeys = 1, kValues = 2, kPastKeys = 3, kPastValues = 4;
  constexpr size_t kCos = 7, kSin = 8;
  Operands operands;
  operands.heads = IntAttribute(m.node(), "num_heads", 0);
  operands.kv_heads = IntAttribute(m.node(), "kv_num_heads", 0);
  operands.is_causal = true;
  if (!m.HasInput(kQueries) || m.DimsOf(kQueries).size() != 3) return false;
  if (operands.heads <= 0 || operands.kv_heads <= 0) return false;
  const Dims& q = m.DimsOf(kQueries);
  if (m.Operand(kKeys).empty()) {
    const int64_t parts = operands.heads + 2 * operands.kv_heads;
    if (q[2] % parts != 0) return false;
    const int64_t kv = q[2] / parts * operands.kv_heads;
    const auto split =
        SplitLast(m, m.Operand(kQueries), {q[2] / parts * operands.heads, kv, kv}, "part");
    operands.queries = split[0];
    operands.keys = split[1];
    operands.values = split[2];
  } else {
    operands.queries = m.Operand(kQueries);
    operands.keys = m.Operand(kKeys);
    operands.values = m.Operand(kValues);
  }
  int64_t past = 0;
  if (m.HasInput(kPastKeys) && m.HasInput(kPastValues)) {
    if (m.DimsOf(kPastKeys).size() != 4) return false;
    past = m.DimsOf(kPastKeys)[2];
  }
  if (past > 0) {
    operands.past_keys = m.Operand(kPastKeys);
    operands.past_values = m.Operand(kPastValues);
  }
  if (IntAttribute(m.node(), "do_rotary", 0) != 0) {
    if (!IsMatrix(m, kCos) || !IsMatrix(m, kSin)) return false;
    if (past + q[1] > m.DimsOf(kCos)[0]) past = 0;  // The cache may have full length.
    const std::string cos = RowsOf(m, kCos, past, q[0], q[1], "cos");
    const std::string sin = RowsOf(m, kSin, past, q[0], q[1], "sin");
    const auto rotate = [&](const std::string& value, int64_t heads, const char* what) {
      Maker::Attributes attributes = {Maker::Int("num_heads", heads)};
      m.Copy("rotary_interleaved", &attributes, "interleaved");
      // Only a part of each head may be rotated.
      attributes.push_back(Maker::Int("rotary_embedding_dim", 2 * m.DimsOf(kCos)[1]));
      return m.Do("RotaryEmbedding", {value, cos, sin}, what, attributes);
    };
    operands.queries = rotate(operands.queries, operands.heads, "rotated_q");
    operands.keys = rotate(operands.keys, operands.kv_heads, "rotated_k");
  }
  const auto made = DoAttention(m, operands);
  for (size_t i = 0; i < made.size(); ++i) m.Output(i, made[i]);
  return true;
}

bool MakeRotaryEmbedding(Maker& m) {
  constexpr size_t kInput = 0, kPositions = 1, kCos = 2, kSin = 3;
  if (!m.HasInput(kInput) || !m.HasInput(kPositions) || !IsMatrix(m, kCos) || !IsMatrix(m, kSin)) {
    return false;
  }
  const Dims& x = m.DimsOf(kInput);
  if (x.size() != 3 && x.size() != 4) return false;
  const int64_t rotated = 2 * m.DimsOf(kCos)[1];
  Maker::Attributes attributes;
  m.Copy("interleaved", &attributes);
  int64_t heads = IntAttribute(m.node(), "num_heads", 0);
  if (heads == 0 && x.size() == 3 && rotated > 0) heads = x[2] / rotated;
  if (x.size() == 3) attributes.push_back(Maker::Int("num_heads", heads));
  m.Copy("rotary_embedding_dim", &attributes);
  if (m.DimsOf(kPositions).size() == 2) {
    m.Finish("RotaryEmbedding",
             {m.Operand(kInput), m.Operand(kCos), m.Operand(kSin), m.Operand(kPositions)},
             attributes);
    return true;
  }
  const int64_t length = x.size() == 3 ? x[1] : x[2];
  m.Finish("RotaryEmbedding",
           {m.Operand(kInput), RowsOf(m, kCos, 0, x[0], length, "cos"),
            RowsOf(m, kSin, 0, x[0], length, "sin")},
           attributes);
  return true;
}

}  // namespace ckplan
