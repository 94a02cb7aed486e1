// Which initializers PyTorch trained. `torch.onnx.export(dynamo=True)` lists the parameters and
// buffers of the exported program, once for each initializer and once for the whole graph:
//
//   value_info  pkg.torch.export.graph_signature.InputSpec.kind           PARAMETER
//   graph       pkg.torch.export.ExportedProgram.graph_signature          p_w: PARAMETER target='w'
//
// What the exporter's optimizer folds has a name of its own and a list of what it was folded from.
#pragma once

#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Sets ModelValue::signature of all initializers, if the file lists parameters: an initializer that
// is no parameter, nor folded from one, is not trained.
void ReadSignature(Model::Impl& model);

struct SignatureBuffer {
  std::string name;
  Bytes bytes;
};
// Returns the buffers that the signature of a model lists that is read as captured. PyTorch's
// normalizations count the batches that they have seen in one integer of 64 bits, which exporters
// leave out of the file; other buffers that the file lacks have no known size and are left out.
std::vector<SignatureBuffer> BuffersOfSignature(const Model::Impl& model);

}  // namespace ckplan
