#include "cli/ckplan/options.h"

namespace ckplan {

void AddCostOption(CommandLine& line, Options& options) {
  line.Value("--cost", "MODEL", "flops[:DEVICE] (default, a roofline), paper, unit, or file:PATH",
             &options.cost);
}

void AddGranularityOption(CommandLine& line, Options& options) {
  line.Choice("--granularity", {"node", "layer"},
              "decide on nodes, or on layers: conv, bn, relu as one", &options.granularity);
}

void AddSourceOptions(CommandLine& line, Options& options) {
  line.List("-D,--dim", "NAME=N", "bind a symbolic dimension; once for each", &options.dims);
  line.List("--input-shape", "NAME=N,N,...", "another shape for an input: x=2,3,64,64",
            &options.input_shapes);
  AddCostOption(line, options);
  line.Value("--autograd", "minimal|torch",
             "what backward reads: what it needs, or what PyTorch keeps", &options.autograd);
  line.Value("--activation-type", "float32|bf16",
             "what activations are stored as (default: the model's own types)",
             &options.activation_type);
  line.Value("--align", "N", "round every buffer up to N bytes (PyTorch: 512, CUDA: 256)",
             &options.align);
}

void AddScreenOptions(CommandLine& line, Options& options) {
  line.Choice("--color", {"auto", "always", "never"}, "colour of text", &options.color);
  line.Flag("-q,--quiet", "print nothing on success but what was asked for", &options.is_quiet);
  line.Flag("--no-progress", "no progress line on a terminal", &options.has_no_progress);
}

}  // namespace ckplan
