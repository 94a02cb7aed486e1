#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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
  // If the past is a buffer, [batch]: where new keys are written, and how many it then has.
  std::string begins, lengths;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  bool is_causal = false;
  bool is_in_heads = false;  // Keys and values are.
};

// Converts [batch, length, heads * size] to [batch, heads, length, size].
std::string InHeads(Maker& m, const std::string& value, int64_t heads, const std::string& what) {
  const std::string parted =
      m.Do("Reshape", {value, m.Ints({0, 0, heads, -1}, what + "_shape")}, what + "_parted");
  return m.Do("Transpose", {parted}, what, {Maker::IntList("perm", {0, 2, 1, 3})});
}

std::string FromHeads(Maker& m, const std::string& value) {
  const std::string joined =
      m.Do("Transpose", {value}, "joined", {Maker::IntList("perm", {0, 2, 1, 3})});
  return m.Do("Reshape", {joined, m.Ints({0, 0, -1}, "out_shape")}, "out");
}

// The results of an attention, the keys and values in heads, with those of the past, if an output
// asks for them, and the scores.
struct Attended {
  std::string result, keys, values, scores;
};

// Makes ONNX's Attention.
Attended DoAttention(Maker& m, Operands operands) {
  constexpr size_t kScores = 3;
  Maker::Attributes attributes = {Maker::Int("q_num_heads", operands.heads),
                                  Maker::Int("kv_num_heads", operands.kv_heads)};
  if (operands.is_causal) attributes.push_back(Maker::Int("is_causal", 1));
  if (FloatAttribute(m.node(), "scale", 0) != 0) m.Copy("scale", &attributes);
  if (FloatAttribute(m.node(), "softcap", 0) != 0) m.Copy("softcap", &attributes);
  const bool is_buffer = !operands.begins.empty();
  const bool has_past = !operands.past_keys.empty() && !is_buffer;
  const bool wants_keys = is_buffer || (!has_past && (m.HasOutput(1) || m.HasOutput(2)));
  Attended made;
  const auto in_heads = [&](const std::string& value, const std::string& what) {
    if (!operands.is_in_heads) return InHeads(m, value, operands.kv_heads, what);
    return is_buffer ? value : m.Do("Identity", {value}, what);
  };
  if (wants_keys) {
    made.keys = in_heads(operands.keys, is_buffer ? "new_keys" : "present_keys");
    made.values = in_heads(operands.values, is_buffer ? "new_values" : "present_values");
  }
  if (is_buffer) {
    made.keys = m.Do("TensorScatter", {operands.past_keys, made.keys, operands.begins},
                     "present_keys", {Maker::Int("axis", -2)});
    made.values = m.Do("TensorScatter", {operands.past_values, made.values, operands.begins},
                       "present_values", {Maker::Int("axis", -2)});
    operands.keys = made.keys;
    operands.values = made.values;
    operands.past_keys = operands.past_values = "";
    operands.is_in_heads = true;
  }
  if (operands.is_in_heads) {
    operands.queries = InHeads(m, operands.queries, operands.heads, "heads_of_queries");
  }
  std::vector<std::string> what = {"attention"};
  if (has_past) what.insert(what.end(), {"present_keys", "present_values"});
  if (m.HasOutput(kScores)) {
    what.resize(kScores);
    what.emplace_back("scores");
  }
  const std::vector<std::string> outputs =
      m.DoSeveral("Attention",
                  {operands.queries, operands.keys, operands.values, operands.mask,
                   operands.past_keys, operands.past_values, operands.lengths},
                  what, attributes);
  made.result = operands.is_in_heads ? FromHeads(m, outputs[0]) : outputs[0];
  if (has_past) {
    made.keys = outputs[1];
    made.values = outputs[2];
  }
  if (m.HasOutput(kScores)) made.scores = outputs[kScores];
  return made;
}

void SetOutputs(Maker& m, const Attended& made) {
  m.Output(0, made.result);
  m.Output(1, made.keys);
  m.Output(2, made.values);
  m.Output(3, made.scores);
}

std::vector<std::string> SplitLast(Maker& m, const std::string& value,
                                   const std::vector<int64_t>& sizes, const std::string& what) {
  return m.DoSeveral("Split", {value, m.Ints(sizes, what + "_sizes")},
                     {what + "_q", what + "_k", what + "_v"}, {Maker::Int("axis", -1)});
}

// The positions [begin, end).
std::string Places(Maker& m, int64_t begin, int64_t end, int32_t type, const std::string& what) {
  const auto number = [&](int64_t value, const char* name) {
    return m.Constant({type, {}, {value}, {}}, what + name);
  };
  return m.Do("Range", {number(begin, "_begin"), number(end, "_end"), number(1, "_step")}, what);
}

// A part [begin, end) of a list, as a column.
std::string Column(Maker& m, size_t input, int64_t begin, int64_t end, const std::string& what) {
  std::string part = m.Operand(input);
  if (m.DimsOf(input)[0] != end - begin) {
    part = m.Do("Slice",
                {part, m.Ints({begin}, what + "_begin"), m.Ints({end}, what + "_end"),
                 m.Ints({0}, what + "_axis")},
                what + "_part");
  }
  return m.Do("Unsqueeze", {part, m.Ints({1}, what + "_last")}, what);
}

// Makes booleans that broadcast to [batch, heads, queries, keys] of a mask of numbers, in one of
// ONNX Runtime's forms. Returns false for others.
//
//   [batch]              the number of keys of each sample
//   [2 * batch]          the ends of its keys, then their begins
//   [3 * batch + 2]      the same as [batch], then running sums of lengths
//   [batch, keys]        a 1 for each key
//   [batch, queries, keys], [batch, 1, most, most]
bool ReadMask(Maker& m, size_t input, int64_t batch, int64_t queries, int64_t keys,
              std::string* mask) {
  if (m.Operand(input).empty()) return true;
  if (!m.HasInput(input)) return false;
  const Dims& dims = m.DimsOf(input);
  std::string value = m.Operand(input);
  if (dims.size() == 1) {
    const bool has_begins = dims[0] == 2 * batch;
    if (dims[0] != batch && !has_begins && dims[0] != 3 * batch + 2) return false;
    const int32_t type = m.TypeOf(input);
    if (type != TensorProto::INT32 && type != TensorProto::INT64) return false;
    const std::string places = Places(m, 0, keys, type, "places");
    value = m.Do("Less", {places, Column(m, input, 0, batch, "ends")}, "is_before_end");
    if (has_begins) {
      const std::string begins = Column(m, input, batch, 2 * batch, "begins");
      value = m.Do("And", {value, m.Do("GreaterOrEqual", {places, begins}, "is_begun")}, "is_key");
    }
  } else if (dims == Dims{batch, keys} || dims.size() == 3 || dims.size() == 4) {
    if (dims.size() == 4 && dims[2] > queries && dims[3] >= keys) {
      value = m.Do("Slice",
                   {value, m.Ints({keys - queries, 0}, "mask_begins"),
                    m.Ints({keys, keys}, "mask_ends"), m.Ints({2, 3}, "mask_sides")},
                   "mask_of_rows");
    }
    value = m.Do("Cast", {value}, "is_key", {Maker::Int("to", TensorProto::BOOL)});
  } else {
    return false;
  }
  if (dims.size() <= 2) value = m.Do("Unsqueeze", {value, m.Ints({1, 2}, "mask_axes")}, "mask");
  if (dims.size() == 3) value = m.Do("Unsqueeze", {value, m.Ints({1}, "mask_axes")}, "mask");
  *mask = value;
  return true;
}

// Adds the bias of the scores to a mask.
bool ReadBias(Maker& m, size_t input, std::string* mask) {
  if (m.Operand(input).empty()) return true;
  if (!m.HasInput(input)) return false;
  constexpr double kMasked = -10000;
  *mask = mask->empty() ? m.Operand(input)
                        : m.Do("Where",
                               {*mask, m.Operand(input),
                                m.Number(FloatAttribute(m.node(), "mask_filter_value", kMasked),
                                         input, "masked")},
                               "masked_bias");
  return true;
}

// Sets where new keys are written into a buffer of the past: at a number for all samples.
void WriteFrom(Maker& m, size_t begin, int64_t batch, int64_t length, Operands* operands) {
  const std::string place =
      m.Do("Cast", {m.Operand(begin)}, "begin", {Maker::Int("to", TensorProto::INT64)});
  operands->begins = m.Do("Expand", {place, m.Ints({batch}, "samples")}, "begins");
  operands->lengths = m.Do("Add", {operands->begins, m.Ints({length}, "written")}, "lengths");
}

// The tables of a rotation for [batch, length] positions from `begin` on, if no ids are given.
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

// Rotates queries and keys of `width` features by their positions from `begin` on, as an Attention
// does without tables.
bool Rotate(Maker& m, int64_t begin, int64_t width, Operands* operands) {
  constexpr double kBase = 10000;
  const Dims& x = m.DimsOf(0);
  const int64_t head = width / operands->heads;
  const int64_t given = IntAttribute(m.node(), "rotary_embedding_dim", 0);
  const int64_t rotated = given == 0 ? head : given;
  if (rotated < 2 || rotated % 2 != 0 || rotated > std::min(head, kMaxFoldedElements)) return false;
  ConstantValue rates{TensorProto::FLOAT, {rotated / 2}, {}, {}};
  for (int64_t i = 0; i < rotated; i += 2) {
    rates.reals.push_back(std::pow(kBase, -static_cast<double>(i) / static_cast<double>(rotated)));
  }
  const std::string places =
      m.Do("Cast", {Places(m, begin, begin + x[1], TensorProto::INT64, "positions")}, "places",
           {Maker::Int("to", TensorProto::FLOAT)});
  const std::string rows = m.Do("Unsqueeze", {places, m.Ints({1}, "last")}, "rows");
  const std::string angles = m.Do("Mul", {rows, m.Constant(rates, "rates")}, "angles");
  const auto table = [&](const char* op, const std::string& what) {
    const std::string waves = m.Do(op, {angles}, what);
    const int32_t type = IsFloatType(m.TypeOf(0)) ? m.TypeOf(0) : int32_t{TensorProto::FLOAT};
    const std::string values = m.Do("Cast", {waves}, what + "_cast", {Maker::Int("to", type)});
    return m.Do("Expand", {values, m.Ints({x[0], x[1], rotated / 2}, what + "_shape")},
                what + "_table");
  };
  const std::string cos = table("Cos", "cos");
  const std::string sin = table("Sin", "sin");
  const Maker::Attributes attributes = {Maker::Int("num_heads", operands->heads),
                                        Maker::Int("rotary_embedding_dim", rotated)};
  operands->queries =
      m.Do("RotaryEmbedding", {operands->queries, cos, sin}, "rotated_q", attributes);
  operands->keys = m.Do("RotaryEmbedding", {operands->keys, cos, sin}, "rotated_k", attributes);
  return true;
}

bool IsMatrix(const Maker& m, size_t input) {
  return m.HasInput(input) && m.DimsOf(input).size() == 2;
}

}  // namespace

// A QAttention is one whose input and weight are quantized.
bool MakeAttention(Maker& m) {
  constexpr size_t kInput = 0, kWeights = 1, kBias = 2, kScale = 3;
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  const bool is_quantized = m.node().op_type() == "QAttention";
  const size_t mask = is_quantized ? 5 : 3, past = is_quantized ? 8 : 4;
  const size_t mask_bias = is_quantized ? kNone : 5, past_length = is_quantized ? kNone : 6;
  if (!m.HasInput(kInput) || !IsMatrix(m, kWeights) || m.DimsOf(kInput).size() != 3) return false;
  Operands operands;
  operands.heads = operands.kv_heads = IntAttribute(m.node(), "num_heads", 0);
  operands.is_causal = IntAttribute(m.node(), "unidirectional", 0) != 0;
  const int64_t all = m.DimsOf(kWeights)[1];
  std::vector<int64_t> sizes = IntsAttribute(m.node(), "qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all / 3);
  const bool is_whole = sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == all;
  if (!is_whole || operands.heads <= 0) return false;
  std::string joint;
  if (is_quantized) {
    joint = m.Do("com.microsoft.MatMulIntegerToFloat",
                 {m.Operand(kInput), m.Operand(kWeights), m.Operand(kScale), m.Operand(kScale + 1),
                  m.Operand(mask + 1), m.Operand(mask + 2), m.Operand(kBias)},
                 "product");
  } else {
    joint = m.Do("MatMul", {m.Operand(kInput), m.Operand(kWeights)}, "product");
    if (m.HasInput(kBias)) joint = m.Do("Add", {joint, m.Operand(kBias)}, "biased");
  }
  const auto parts = SplitLast(m, joint, sizes, "part");
  operands.queries = parts[0];
  operands.keys = parts[1];
  operands.values = parts[2];
  const Dims& x = m.DimsOf(kInput);
  int64_t keys = x[1];
  int64_t begin = 0;  // Tokens before these; those in a buffer are unknown.
  if (m.HasInput(past)) {
    if (m.DimsOf(past).size() != 5) return false;
    const bool is_buffer = IntAttribute(m.node(), "past_present_share_buffer", 0) != 0;
    if (is_buffer && !m.HasInput(past_length)) return false;
    if (is_buffer) WriteFrom(m, past_length, x[0], keys, &operands);
    if (!is_buffer) begin = m.DimsOf(past)[3];
    keys = m.DimsOf(past)[3] + (is_buffer ? 0 : keys);
    const auto pair = m.DoSeveral("Split", {m.Operand(past)}, {"past_k", "past_v"},
                                  {Maker::Int("axis", 0), Maker::Int("num_outputs", 2)});
    operands.past_keys = m.Do("Squeeze", {pair[0], m.Ints({0}, "past_k_axis")}, "past_keys");
    operands.past_values = m.Do("Squeeze", {pair[1], m.Ints({0}, "past_v_axis")}, "past_values");
  }
  if (IntAttribute(m.node(), "do_rotary", 0) != 0 && !Rotate(m, begin, sizes[0], &operands)) {
    return false;
  }
  if (!ReadMask(m, mask, x[0], x[1], keys, &operands.mask)) return false;
  if (!ReadBias(m, mask_bias, &operands.mask)) return false;
  const Attended made = DoAttention(m, operands);
  m.Output(0, made.result);
  if (m.HasOutput(1)) {
    const std::string k = m.Do("Unsqueeze", {made.keys, m.Ints({0}, "k_axis")}, "present_k");
    const std::string v = m.Do("Unsqueeze", {made.values, m.Ints({0}, "v_axis")}, "present_v");
    m.Output(1, m.Do("Concat", {k, v}, "present", {Maker::Int("axis", 0)}));
  }
  return true;
}

bool MakeMultiHeadAttention(Maker& m) {
  constexpr size_t kQueries = 0, kKeys = 1, kValues = 2, kBias = 3, kPadding = 4, kMaskBias = 5;
  constexpr size_t kPastKeys = 6, kPastValues = 7, kPastLength = 8;
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
  } else if (q.size() == 3 && m.HasInput(kKeys) && m.DimsOf(kKeys).size() == 5) {
    // [batch, length, heads, 2, size]
    const auto parts = m.DoSeveral("Split", {m.Operand(kKeys)}, {"k", "v"},
                                   {Maker::Int("axis", 3), Maker::Int("num_outputs", 2)});
    const std::string shape = m.Ints({0, 0, q[2]}, "shape");
    operands.queries = m.Operand(kQueries);
    operands.keys = m.Do("Reshape", {parts[0], shape}, "keys");
    operands.values = m.Do("Reshape", {parts[1], shape}, "values");
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
    const bool is_buffer = m.HasInput(kPastLength);
    if (is_buffer) WriteFrom(m, kPastLength, q[0], keys, &operands);
    keys = m.DimsOf(kPastKeys)[2] + (is_buffer ? 0 : keys);
  }
  if (!ReadMask(m, kPadding, q[0], q[1], keys, &operands.mask)) return false;
  if (!ReadBias(m, kMaskBias, &operands.mask)) return false;
  operands.is_in_heads = is_in_heads;
  SetOutputs(m, DoAttention(m, operands));
  return true;
}

bool MakeGroupQueryAttention(Maker& m) {
  constexpr size_t kQueries = 0, kKeys = 1, kValues = 2, kPastKeys = 3, kPastValues = 4;
  constexpr size_t kLast = 5, kTotal = 6, kCos = 7, kSin = 8, kPositions = 9, kBias = 10;
  constexpr size_t kSink = 11;
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
  if (m.HasInput(kSink) || IntAttribute(m.node(), "smooth_softmax", 0) != 0) {
    m.Assume("it is planned without the sink of its softmax, one number for each head");
  }
  int64_t past = 0;  // Tokens before these.
  int64_t keys = q[1];
  if (m.HasInput(kPastKeys) && m.HasInput(kPastValues)) {
    if (m.DimsOf(kPastKeys).size() != 4) return false;
    past = m.DimsOf(kPastKeys)[2];
    keys += past;
  }
  if (past > 0) {
    operands.past_keys = m.Operand(kPastKeys);
    operands.past_values = m.Operand(kPastValues);
    // A past with room for the new tokens is a buffer that they are written into.
    const std::optional<int64_t> total = m.KnownNumber(kTotal);
    if (!total) {
      m.Assume("its cache is planned to grow by the new tokens, not as a buffer for them", kTotal);
    }
    if (total && *total >= q[1] && *total <= past && m.HasInput(kLast)) {
      const std::string last =
          m.Do("Cast", {m.Operand(kLast)}, "last", {Maker::Int("to", TensorProto::INT64)});
      const std::string flat = m.Do("Reshape", {last, m.Ints({q[0]}, "samples")}, "last_of_all");
      operands.lengths = m.Do("Add", {flat, m.Ints({1}, "one")}, "lengths");
      operands.begins = m.Do("Sub", {operands.lengths, m.Ints({q[1]}, "written")}, "begins");
      keys = past;
      past = *total - q[1];
    }
  }
  if (IntAttribute(m.node(), "do_rotary", 0) != 0) {
    if (!IsMatrix(m, kCos) || !IsMatrix(m, kSin)) return false;
    const bool has_ids = m.HasInput(kPositions) && m.DimsOf(kPositions).size() == 2;
    // The cache may be a buffer of full length.
    const int64_t begin = past + q[1] > m.DimsOf(kCos)[0] ? 0 : past;
    const std::string cos = has_ids ? m.Operand(kCos) : RowsOf(m, kCos, begin, q[0], q[1], "cos");
    const std::string sin = has_ids ? m.Operand(kSin) : RowsOf(m, kSin, begin, q[0], q[1], "sin");
    const auto rotate = [&](const std::string& value, int64_t heads, const char* what) {
      Maker::Attributes attributes = {Maker::Int("num_heads", heads)};
      m.Copy("rotary_interleaved", &attributes, "interleaved");
      // Only a part of each head may be rotated.
      attributes.push_back(Maker::Int("rotary_embedding_dim", 2 * m.DimsOf(kCos)[1]));
      return m.Do("RotaryEmbedding", {value, cos, sin, has_ids ? m.Operand(kPositions) : ""}, what,
                  attributes);
    };
    operands.queries = rotate(operands.queries, operands.heads, "rotated_q");
    operands.keys = rotate(operands.keys, operands.kv_heads, "rotated_k");
  }
  const int64_t window = IntAttribute(m.node(), "local_window_size", -1);
  if (window > 0 && window < keys) {
    const std::string rows =
        m.Do("Unsqueeze",
             {Places(m, past - window + 1, past - window + 1 + q[1], TensorProto::INT64, "firsts"),
              m.Ints({1}, "column")},
             "first_keys");
    operands.mask = m.Do("GreaterOrEqual", {Places(m, 0, keys, TensorProto::INT64, "places"), rows},
                         "is_in_window");
  }
  if (!ReadBias(m, kBias, &operands.mask)) return false;
  SetOutputs(m, DoAttention(m, operands));
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
