// Convolutions and pools, by their definitions: every output element looks at its window.
#include <algorithm>
#include <limits>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

std::vector<int64_t> IntsOr(const OpSpec& spec, std::string_view name, size_t count,
                            int64_t otherwise) {
  std::vector<int64_t> ints = spec.Ints(name);
  if (ints.empty()) ints.assign(count, otherwise);
  return ints;
}

// Of spatial axes alone. `in` is what the window slides over.
struct Sliding {
  std::vector<int64_t> in, out, kernel, strides, dilations, begins, ends;
};

Sliding ReadSliding(const OpSpec& spec, const std::vector<int64_t>& in,
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

// Calls visit(index of x's spatial axes, index in the kernel, whether it lies on x or in its
// padding) for the window at `out`. What lies beyond the padding is not visited.
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

Index Join(int64_t a, int64_t b, const Index& rest) {
  Index index = {a, b};
  index.insert(index.end(), rest.begin(), rest.end());
  return index;
}

// Elements of one channel of one sample.
int64_t Plane(const Tensor& x) { return x.size() / (x.dim(0) * x.dim(1)); }

Index Spatial(const Index& index) { return {index.begin() + 2, index.end()}; }

void Conv(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Tensor& w = inputs[1];
  Tensor& y = outputs[0];
  const Sliding s = ReadSliding(spec, x.dims, y.dims, {w.dims.begin() + 2, w.dims.end()}, false);
  const int64_t per_group = y.dim(1) / spec.Int("group", 1);
  ForEach(y.dims, [&](const Index& index, int64_t o) {
    const bool has_bias = inputs.size() > 2 && inputs[2].is_present;
    y[o] = has_bias ? inputs[2][index[1]] : 0;
    const int64_t first = index[1] / per_group * w.dim(1);
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index& k, bool is_inside) {
      if (!is_inside) return;
      const int64_t x_at = Offset(x, Join(index[0], first, at));
      const int64_t w_at = Offset(w, Join(index[1], 0, k));
      for (int64_t c = 0; c < w.dim(1); ++c) {
        y[o] += x[x_at + c * Plane(x)] * w[w_at + c * Plane(w)];
      }
    });
  });
}

// The other way around: every element of x adds to its window in y.
void ConvTranspose(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Tensor& w = inputs[1];
  Tensor& y = outputs[0];
  const Sliding s = ReadSliding(spec, y.dims, x.dims, {w.dims.begin() + 2, w.dims.end()}, true);
  const int64_t per_group = x.dim(1) / spec.Int("group", 1);
  ForEach(y.dims, [&](const Index& index, int64_t o) {
    const bool has_bias = inputs.size() > 2 && inputs[2].is_present;
    y[o] = has_bias ? inputs[2][index[1]] : 0;
  });
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    const int64_t first = index[1] / per_group * w.dim(1);
    ForEach(s.kernel, [&](const Index& k, int64_t) {
      Index at(k.size());
      for (size_t a = 0; a < k.size(); ++a) {
        at[a] = index[a + 2] * s.strides[a] - s.begins[a] + k[a] * s.dilations[a];
        if (at[a] < 0 || at[a] >= s.in[a]) return;
      }
      const int64_t y_at = Offset(y, Join(index[0], first, at));
      const int64_t w_at = Offset(w, Join(index[1], 0, k));
      for (int64_t c = 0; c < w.dim(1); ++c) {
        y[y_at + c * Plane(y)] += x[i] * w[w_at + c * Plane(w)];
      }
    });
  });
}

void AveragePool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const bool counts_padding = spec.Int("count_include_pad", 0) != 0;
  const Sliding s = ReadSliding(spec, x.dims, outputs[0].dims, {}, false);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t o) {
    double sum = 0;
    double count = 0;
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index&, bool is_inside) {
      if (is_inside) sum += x[Offset(x, Join(index[0], index[1], at))];
      if (is_inside || counts_padding) ++count;
    });
    outputs[0][o] = sum / count;
  });
}

void MaxPool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Sliding s = ReadSliding(spec, x.dims, outputs[0].dims, {}, false);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t o) {
    double best = -std::numeric_limits<double>::infinity();
    Index where;
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index&, bool is_inside) {
      if (!is_inside || x[Offset(x, Join(index[0], index[1], at))] <= best) return;
      where = Join(index[0], index[1], at);
      best = x[Offset(x, where)];
    });
    outputs[0][o] = best;
    if (outputs.size() < 2) return;
    int64_t position = Offset(x, where);
    if (spec.Int("storage_order", 0) == 1) {  // The first spatial axis is counted innermost.
      position = 0;
      for (size_t axis = where.size(); axis-- > 2;)
        position = position * x.dims[axis] + where[axis];
      const int64_t plane = x.size() / (x.dim(0) * x.dim(1));
      position += (where[0] * x.dim(1) + where[1]) * plane;
    }
    outputs[1][o] = static_cast<double>(position);
  });
}

// The whole image is the window.
OpSpec WholeImage(const OpSpec& spec) {
  OpSpec whole = spec;
  const std::vector<int64_t>& dims = spec.inputs[0].dims;
  whole.attributes["kernel_shape"] = std::vector<int64_t>(dims.begin() + 2, dims.end());
  return whole;
}

void GlobalAveragePool(const OpSpec& spec, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  AveragePool(WholeImage(spec), inputs, outputs);
}

void GlobalMaxPool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  MaxPool(WholeImage(spec), inputs, outputs);
}

constexpr FunctionRow kRows[] = {
    {"AveragePool", AveragePool},     {"Conv", Conv},
    {"ConvTranspose", ConvTranspose}, {"GlobalAveragePool", GlobalAveragePool},
    {"GlobalMaxPool", GlobalMaxPool}, {"MaxPool", MaxPool},
};

}  // namespace

std::span<const FunctionRow> ConvFunctions() { return kRows; }

}  // namespace ckplan::reference
