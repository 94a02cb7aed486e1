// The sliding windows of convolutions and pools.
#pragma once

#include <algorithm>
#include <limits>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

inline std::vector<int64_t> IntsOr(const OpSpec& spec, std::string_view name, size_t count,
                                   int64_t otherwise) {
  std::vector<int64_t> ints = spec.Ints(name);
  if (ints.empty()) ints.assign(count, otherwise);
  return ints;
}

// Sizes along the spatial axes only. `in` belongs to the tensor that the window slides over.
struct Sliding {
  std::vector<int64_t> in, out, kernel, strides, dilations, begins, ends;
};

inline Sliding ReadSliding(const OpSpec& spec, const std::vector<int64_t>& in,
                           const std::vector<int64_t>& out, std::vector<int64_t> kernel,
                           bool is_transposed) {
  Sliding s;
  s.in.assign(in.begin() + 2, in.end());
  s.out.assign(out.begin() + 2, out.end());
  const size_t rank = s.in.size();
  s.kernel = kernel.empty() ? spec.Ints("kernel_shape") : std::move(kernel);
  s.strides = IntsOr(spec, "strides", rank, 1);
  s.dilations = IntsOr(spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = IntsOr(spec, "pads", 2 * rank, 0);
  const std::vector<int64_t> extra = IntsOr(spec, "output_padding", rank, 0);
  const std::string rule = spec.String("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    int64_t begin = pads[i];
    int64_t end = pads[i + rank];
    if (rule[0] == 'S' || spec.Has("output_shape")) {
      const int64_t total =
          std::max<int64_t>(0, (s.out[i] - 1) * s.strides[i] + extra[i] +
                                   (s.kernel[i] - 1) * s.dilations[i] + 1 - s.in[i]);
      const bool is_small_first = is_transposed ? rule == "SAME_UPPER" : rule != "SAME_LOWER";
      begin = is_small_first ? total / 2 : total - total / 2;
      end = total - begin;
    }
    s.begins.push_back(begin);
    s.ends.push_back(end);
  }
  return s;
}

// For each position of the window at `out`, calls visit(index of x's spatial axes, index in the
// kernel, whether it lies on x rather than in its padding). Positions beyond the padding are
// skipped.
template <typename Visit>
void VisitWindow(const Sliding& s, const Index& out, const Visit& visit) {
  ForEach(s.kernel, [&](const Index& k, int64_t) {
    Index at(k.size());
    bool is_inside = true;
    for (size_t i = 0; i < k.size(); ++i) {
      at[i] = out[i] * s.strides[i] - s.begins[i] + k[i] * s.dilations[i];
      if (at[i] >= s.in[i] + s.ends[i]) return;
      is_inside = is_inside && at[i] >= 0 && at[i] < s.in[i];
    }
    visit(static_cast<const Index&>(at), k, is_inside);
  });
}

inline Index Join(int64_t a, int64_t b, const Index& rest) {
  Index index = {a, b};
  index.insert(index.end(), rest.begin(), rest.end());
  return index;
}

inline Index Spatial(const Index& index) { return {index.begin() + 2, index.end()}; }

}  // namespace ckplan::reference
