// Which initializers PyTorch trained. `torch.onnx.export(dynamo=True)` lists the parameters and
// buffers of the exported program, once per initializer and once for the whole graph:
//
//   value_info  pkg.torch.export.graph_signature.InputSpec.kind           PARAMETER
//   graph       pkg.torch.export.ExportedProgram.graph_signature          p_w: PARAMETER target='w'
//
// Initializers folded by the exporter's optimizer have a new name and list what they were folded
// from.
#pragma once

#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Sets ModelValue::signature of all initializers if the file lists parameters. An initializer that
// is neither a parameter nor folded from one is not trained.
void ReadSignature(Model::Impl& model);

struct SignatureBuffer {
  std::string name;
  Bytes bytes;
};
// Returns the buffers in the signature of a model read as captured. PyTorch's normalizations count
// the batches they have seen in a 64-bit integer, which exporters omit. Other buffers missing from
// the file have no known size and are omitted.
std::vector<SignatureBuffer> BuffersOfSignature(const Model::Impl& model);

}  // namespace ckplan
