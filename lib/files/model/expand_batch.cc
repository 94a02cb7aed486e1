#include "lib/files/model/expand_batch.h"

#include <utility>

#include "lib/files/model/constant_batch.h"
#include "lib/files/model/expand.h"
#include "lib/files/model/follow_batch.h"

namespace ckplan {

namespace {

// A reading finds all constants that keep its operations from having shapes, so few are needed.
constexpr int kMostReadings = 16;

}  // namespace

void ClearGraph(Model::Impl* model) {
  model->operations.clear();
  model->values.clear();
  model->made_nodes.clear();
  model->graph_inputs.clear();
  model->graph_outputs.clear();
  model->warnings.clear();
  model->live_outputs.clear();
  model->trainable_ends.clear();
}

Result<Done> ExpandWithBatch(Model::Impl& model, const BoundDims& bound, int64_t batch,
                             const std::string& file) {
  CKPLAN_ASSIGN_OR_RETURN(const BatchVariants variants, WithBatch(bound, batch, file));
  if (variants.size_in_file == batch) return ExpandGraph(model, variants.in_file, file);
  Model::Impl in_file;
  in_file.proto = std::move(model.proto);
  in_file.part = model.part;
  in_file.op_hints = model.op_hints;
  const Result<Done> read = ExpandGraph(in_file, variants.in_file, file);
  model.proto = std::move(in_file.proto);
  model.live_outputs = in_file.live_outputs;
  model.trainable_ends = in_file.trainable_ends;
  CKPLAN_RETURN_IF_ERROR(read);
  BatchFollower follower(in_file, {variants.size_in_file, batch});
  for (int readings = 1;; ++readings) {
    Result<Done> done = ExpandGraph(model, variants.wanted, file, &follower);
    if (done.ok() || !follower.TookConstants() || readings == kMostReadings) return done;
    ClearGraph(&model);
  }
}

}  // namespace ckplan
