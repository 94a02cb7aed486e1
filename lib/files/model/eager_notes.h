// What `ckplan.torch.export` writes of a network besides ONNX, since no exporter keeps it. All of
// it is metadata, which other programs ignore:
//
//   graph       ckplan.eager                1      the file has these notes
//   value_info  ckplan.requires_grad        False  of a parameter that is not trained
//   node        ckplan.in_place             1      it writes its first input
//                                           view   the same, and that is a view of another tensor
//   node        ckplan.copies               0,2    the inputs that it copies before it reads them,
//                                                  because they are not contiguous
#pragma once

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Marks parameters that are not trained, and operations that run in place, and gives each
// operation that copies what a Transpose or the like makes a Transpose of its own: PyTorch's is a
// view, so each such reader has a copy, and saves it. Only for PyTorch's autograd.
void ReadEagerNotes(Model::Impl& model);

}  // namespace ckplan
