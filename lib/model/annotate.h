// The plan written into the model: the same ONNX file with markers in its metadata_props.
//
//   node    ckplan.action           keep, recompute, transient, view
//           ckplan.segment          0-based
//           ckplan.recompute_count  forward runs beyond the first
//   model   ckplan.plan             the whole plan.json
//           ckplan.plan_sha256      of that text
//           ckplan.algorithm, ckplan.budget_bytes (if there is one), ckplan.peak_bytes
//
// Guarantees. Every other byte stays as it was, weights inline or external included: markers are
// appended at wire level, so files above 2 GB work too. Annotating again replaces the markers of
// before. A node without markers is constant: it runs once, outside the step. Where a node is a
// call of a function, its markers are those of the first operation in it. Cost: reading and writing
// the file once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/write_file.h"
#include "lib/model/model.h"
#include "lib/model/rewrite.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct Annotation {
  std::vector<Markers> nodes;  // One for each node of the file's main graph.
  Markers model;
};

// `roles` are those of the ModelGraph whose graph `plan` is for; `plan_json` is the plan's text.
Annotation MakeAnnotation(const std::vector<ModelNodeRole>& roles, const Plan& plan,
                          std::string plan_json);

struct AnnotateOutcome {
  std::unique_ptr<PendingFile> file;  // Whole, for the caller to finish and put in its place.
  std::vector<std::string> warnings;  // The output cannot see its external weights from there.
};

// kIo: a file cannot be read or written. kInvalidInput: the model is damaged, or has another
// number of nodes than `annotation`.
Result<AnnotateOutcome> AnnotateModel(const std::string& in_path, const Annotation& annotation,
                                      const std::string& out_path);

// The plan that an annotated model carries; nothing if it carries none.
Result<std::optional<std::string>> ReadEmbeddedPlan(const std::string& path);

}  // namespace ckplan
