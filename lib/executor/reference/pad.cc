// Pad and CenterCropPad.
#include <algorithm>
#include <string>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/taps.h"

namespace ckplan::reference {

namespace {

// ---- Pad ----------------------------------------------------------------------------------------

// Moves an outside position step by step to the inside: each step reflects it at an edge or wraps
// it around.
Taps PaddedTap(const std::string& mode, int64_t at, int64_t first, int64_t last) {
  const int64_t size = last - first + 1;
  while (at < first || at > last) {
    if (mode == "constant") return {};
    if (mode == "edge") at = at < first ? first : last;
    if (mode == "wrap") at += at < first ? size : -size;
    if (mode == "reflect") at = at < first ? 2 * first - at : 2 * last - at;
  }
  return {{at, 1.0}};
}

void Pad(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  std::vector<double> pads;
  for (const char* name : {"pads", "paddings"}) {
    for (const int64_t pad : spec.Ints(name)) pads.push_back(static_cast<double>(pad));
  }
  if (inputs.size() > 1) pads = inputs[1].values;
  std::vector<int64_t> before(x.dims.size(), 0), after(x.dims.size(), 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    size_t axis = i;
    if (inputs.size() > 3) {
      const auto listed = static_cast<int64_t>(inputs[3].values[i]);
      axis = static_cast<size_t>(listed < 0 ? listed + x.rank() : listed);
    }
    before[axis] = static_cast<int64_t>(pads[i]);
    after[axis] = static_cast<int64_t>(pads[i + pads.size() / 2]);
  }
  std::vector<std::vector<Taps>> taps;
  for (size_t axis = 0; axis < x.dims.size(); ++axis) {
    const int64_t first = std::max<int64_t>(0, -before[axis]);
    const int64_t last = x.dims[axis] - 1 - std::max<int64_t>(0, -after[axis]);
    std::vector<Taps>& own = taps.emplace_back();
    for (int64_t i = 0; i < outputs[0].dims[axis]; ++i) {
      own.push_back(PaddedTap(spec.String("mode", "constant"), i - before[axis], first, last));
    }
  }
  const bool has_value = inputs.size() > 2 && inputs[2].is_present;
  Apply(x, taps, has_value ? inputs[2][0] : spec.Float("value", 0), outputs[0]);
}

void CenterCropPad(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    bool is_inside = true;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const int64_t out = outputs[0].dims[axis];
      const int64_t in = x.dims[axis];
      from[axis] += out < in ? (in - out) / 2 : -((out - in) / 2);
      is_inside = is_inside && from[axis] >= 0 && from[axis] < in;
    }
    outputs[0][i] = is_inside ? x[Offset(x, from)] : 0;
  });
}

constexpr FunctionRow kPadReferences[] = {
    {"Pad", Pad},
    {"CenterCropPad", CenterCropPad},
};

constexpr CaseRow kPadCases[] = {
    {"Pad", "f2x3 i4=[0,1,2,3] -> f4x7"},
    {"Pad", "f2x3 i4=[0,1,2,3] fs@[1.5] -> f4x7", "mode='constant'"},
    {"Pad", "f2x3 i4=[1,-1,0,2] -> f3x4"},
    {"Pad", "f5x6 i4=[-1,-2,-1,-1] -> f3x3"},
    {"Pad", "f4x5 i4=[2,3,1,4] -> f7x12", "mode='reflect'"},
    {"Pad", "f3x3 i4=[0,7,0,8] -> f3x18", "mode='reflect'"},
    {"Pad", "f4x5 i4=[2,3,1,4] -> f7x12", "mode='edge'"},
    {"Pad", "f4x5 i4=[2,7,1,6] -> f7x18", "mode='wrap'"},
    {"Pad", "f5x6 i4=[-1,2,2,-1] -> f6x7", "mode='reflect'"},
    {"Pad", "f5x6 i4=[-1,2,2,-1] -> f6x7", "mode='wrap'"},
    {"Pad", "f2x3x4x5 i4=[0,1,2,3] _ i2=[2,-1] -> f2x3x6x9", "mode='reflect'"},
    {"Pad", "f1x7x7x12 i8=[0,0,0,0,0,3,2,0] fs@[0] -> f1x10x9x12"},
    {"Pad", "i2x3(-9..9) i4=[0,1,2,3] is@[-5] -> i4x7"},
    {"Pad", "b2x3 i4=[0,1,0,1] bs@[1] -> b2x5"},
    {"Pad@2", "f2x3 -> f4x7", "mode='constant' pads=[0,1,2,3] value=2.5"},
    {"Pad@2", "f3x4 -> f5x6", "mode='reflect' pads=[1,1,1,1]"},
    {"Pad@1", "f2x3 -> f2x5", "paddings=[0,1,0,1]"},
    {"CenterCropPad", "f5x6 i2=[3,9] -> f3x9"},
    {"CenterCropPad", "f4x7x2 i2=[7,4] -> f7x4x2", "axes=[0,1]"},
};

}  // namespace

std::span<const FunctionRow> PadReferences() { return kPadReferences; }
std::span<const CaseRow> PadCases() { return kPadCases; }

}  // namespace ckplan::reference
