// Notes about a network that `ckplan.torch.export` adds to the ONNX file because no exporter keeps
// them. They are metadata, which other programs ignore:
//
//   graph       ckplan.eager                1      the file has these notes
//   value_info  ckplan.requires_grad        False  of a parameter that is not trained
//   node        ckplan.in_place             1      it overwrites its first input
//                                           view   the same, and the input is a view of a tensor
//   node        ckplan.copies               0,2    inputs that it copies before reading, because
//                                                  they are not contiguous
#pragma once

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Marks untrained parameters and in-place operations. Each operation that copies the result of a
// Transpose or similar gets its own Transpose: PyTorch's Transpose is a view, so each such reader
// makes and saves a copy. Only for PyTorch's autograd.
void ReadEagerNotes(Model::Impl& model);

// True if ckplan.torch.export wrote the file.
bool HasEagerNotes(const Model::Impl& model);

}  // namespace ckplan
