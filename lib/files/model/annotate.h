// Writes a plan into its model: the same ONNX file with markers in its metadata_props, described in
// docs/onnx-markers.md.
//
//   node    ckplan.action           keep, recompute, transient, offload, view
//           ckplan.segment          0-based
//           ckplan.recompute_count  forward runs beyond the first
//           ckplan.backward_reads   the values that its backward reads, if any
//           ckplan.operations       the operations in it, if it is an expanded call
//   model   ckplan.schema_version   the version of the markers
//           ckplan.plan             the whole plan.json
//           ckplan.plan_sha256      the hash of ckplan.plan
//           ckplan.algorithm, ckplan.budget_bytes (if any), ckplan.peak_bytes
//           ckplan.steps            only if the steps differ from the rule below
//
// All other bytes stay unchanged, including inline and external weights: markers are appended at
// wire level, so files above 2 GB work too. Annotating a model again replaces the earlier markers.
// A node without markers is constant: it runs once, outside the step. The decision of a function
// call is that of the first operation in it. Cost: reading and writing the file once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/result.h"
#include "lib/files/model/file_rows.h"
#include "lib/files/model/model.h"
#include "lib/files/model/wire.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The order in which an annotated model's nodes run: the rule of docs/onnx-markers.md, and the
// marker for plans that don't follow the rule.
//
//   rule     forward by segment, and in the order of the file within a segment; the loss; backward
//            in reverse. Before a backward run, all values that it reads and that must be
//            recomputed are recomputed, each node after the nodes that it needs.
//   marker   "forward 0 1 2 loss backward 2 forward 1 backward 1 0": numbers of nodes in the file's
//            main graph, "4.0" and "4.1" for the operations of an expanded call; after "free", the
//            freed outputs, as "1:o0", or "1:s" for a statistic; after "out", "drop" and "in", the
//            values copied to the host or back, where "1:g0" is the gradient of "1:o0".
//
// The rule depends only on the file, so all readers of the markers derive the same steps.
// Cost: O(steps x reads).

// Returns "i0" for an input, "o0" for an output, "s" for a statistic that the node saves for its
// backward.
std::string TextOf(const ValuePlace& place);

// Returns the marker's value, or nullopt if the rule gives these steps. The schedule has forward
// and backward steps, possibly with copies (lib/problem/schedule/transfers.h), and is valid for
// `graph`, whose nodes the rows refer to.
std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule);

struct Plan;

struct Annotation {
  std::vector<Markers> nodes;  // The markers of each node of the file's main graph.
  Markers model;
};

// The version of the markers. Since version 2, nodes list the values that their backward reads and
// models may have steps. Since version 3, steps may be copies to the host and back. Plans without
// copies use version 2, so that its readers still work.
inline constexpr std::string_view kMarkerVersion = "2.0";
inline constexpr std::string_view kMarkerVersionWithCopies = "3.0";

// `rows` are the file's. `graph` is the graph of their nodes and of the plan: the model's graph or
// a stage of it. The plan's steps are forward and backward steps and copies (for plans of a joint
// graph, see lib/planning/planner/model_form.h). `plan_json` is the plan's text.
Annotation MakeAnnotation(const std::vector<FileRow>& rows, const TensorGraph& graph,
                          const Plan& plan, std::string plan_json);

struct AnnotateOutcome {
  std::unique_ptr<PendingFile> file;  // Complete; the caller finishes and commits it.
  std::vector<std::string> warnings;  // For example: the output's external weights are not in its
                                      // folder.
};

// Fails with kIo if a file can't be read or written, and with kInvalidInput if the model is damaged
// or its number of nodes differs from that of `annotation`.
Result<AnnotateOutcome> AnnotateModel(const std::string& in_path, const Annotation& annotation,
                                      const std::string& out_path);

// Returns the plan in an annotated model, or nullopt.
Result<std::optional<std::string>> ReadEmbeddedPlan(const std::string& path);

// Checks an annotated model's markers: each must agree with the plan and occur once, and no others
// may exist.

// Fails with kIo if the file can't be read, kInvalidInput or kUnsupported if its encoding is
// damaged.
Result<FoundMarkers> ReadMarkers(const std::string& path);

// Returns one line per fault; empty if the markers match `expected`. Markers of another version are
// a single fault.
std::vector<std::string> FindMarkerFaults(const FoundMarkers& found, const Annotation& expected);

}  // namespace ckplan
