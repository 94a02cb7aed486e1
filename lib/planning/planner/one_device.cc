#include "lib/planning/planner/one_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/parallel/division.h"

namespace ckplan {
namespace {

Error ExclusiveFieldError(std::string message, std::string field) {
  return Error{ErrorCode::kUsage, std::move(message), {}, {"leave out", {{std::move(field), ""}}}};
}

// Tells whether the request sets a field that only makes sense with a pipeline.
bool HasPipelineFields(const PlanRequest& request) {
  for (const RequestField& field : RequestFields()) {
    if (field.scope.is_of_pipelines && !IsDefault(field, request)) return true;
  }
  return false;
}

void SetConstants(const ShardedConstants& constants, TensorGraphParts* parts) {
  parts->parameters = constants.parameters;
  parts->parameter_gradients = constants.parameter_gradients;
  parts->optimized = constants.optimized;
  parts->optimized_tensors = constants.optimized_tensors;
  parts->unsharded = constants.unsharded;
}

// Returns the constants of a device that holds all parameters whole.
ShardedConstants WholeConstants(const std::vector<Parameter>& parameters) {
  ShardedConstants constants;
  for (const Parameter& parameter : parameters) {
    constants.parameters += parameter.bytes;
    if (parameter.kind != Parameter::Kind::kTrained) continue;
    constants.parameter_gradients += parameter.bytes;
    constants.optimized += parameter.bytes;
    if (parameter.elements > 0) {
      constants.optimized_tensors.push_back(parameter.AsOptimized());
    }
  }
  constants.optimized_tensors = Merged(std::move(constants.optimized_tensors));
  return constants;
}

std::vector<Parameter> ParametersReadBy(const NodeRange& nodes,
                                        const std::vector<Parameter>& parameters) {
  std::vector<Parameter> read;
  for (const Parameter& parameter : parameters) {
    Parameter own = parameter;
    std::erase_if(own.readers, [&](NodeId reader) { return !nodes.Has(reader); });
    if (!own.readers.empty()) read.push_back(std::move(own));
  }
  return read;
}

// Converts the source's lists from the nodes and tensors of the whole model to those of the stage.
void Renumber(const NodeRange& nodes, const IdVector<TensorId, TensorId>& tensor_of,
              Source* source) {
  for (ModelNodeRole& role : source->roles) {
    if (role.role != NodeRole::kNode) continue;
    role = nodes.Has(role.node)
               ? ModelNodeRole{NodeRole::kNode, NodeId(role.node.index() - nodes.begin.index())}
               : ModelNodeRole{};
  }
  IdVector<NodeId, int32_t>& call_of = source->modules.call_of;
  if (!call_of.empty()) {
    IdVector<NodeId, int32_t> own;
    for (NodeId id = nodes.begin; id < nodes.end; ++id) own.push_back(call_of[id]);
    call_of = std::move(own);
  }
  std::vector<AbsentValue> absent;
  for (AbsentValue value : source->absent_values) {
    if (!value.tensor.is_none()) {
      value.tensor = tensor_of[value.tensor];
      if (value.tensor.is_none()) continue;
    }
    absent.push_back(std::move(value));
  }
  source->absent_values = std::move(absent);
}

// Returns the nodes that the pattern matches, in order. Fails if it matches none.
Result<std::vector<NodeId>> FindMatchingNodes(const TensorGraph& graph,
                                              NamePatterns PlanRequest::*field,
                                              const std::string& pattern) {
  PlanRequest request;
  request.*field = {pattern};
  CKPLAN_ASSIGN_OR_RETURN(const Constraints constraints, ConstraintsOf(graph, request));
  std::vector<NodeId> meant;
  for (const NodeId id : graph.nodes().ids()) {
    // Kept nodes are in `runs_once`.
    if (constraints.is_recomputed[id] || constraints.runs_once[id]) meant.push_back(id);
  }
  return meant;
}

// Rejects a pattern that only matches nodes in other stages, with a different message from that for
// a pattern that matches nothing.
Result<Done> CheckPatterns(const TensorGraph& whole, const std::vector<NodeId>& starts,
                           const PlanRequest& request) {
  const PipelineStage& own = *request.pipeline;
  const NodeRange nodes = NodesOfStage(starts, own.index, whole.nodes().size());
  for (const auto field :
       {&PlanRequest::keep, &PlanRequest::recompute, &PlanRequest::never_rerun}) {
    for (const std::string& pattern : request.*field) {
      if (pattern.starts_with('!')) continue;
      CKPLAN_ASSIGN_OR_RETURN(const std::vector<NodeId> meant,
                              FindMatchingNodes(whole, field, pattern));
      const auto is_own = [&](NodeId id) { return nodes.Has(id); };
      if (std::any_of(meant.begin(), meant.end(), is_own)) continue;
      const auto next = std::upper_bound(starts.begin(), starts.end(), meant.front());
      return MakeError(ErrorCode::kUsage,
                       fmt::format("\"{}\" matches nothing in stage {}: node \"{}\" is in stage {}",
                                   Printable(pattern, 200), TextOf(own),
                                   Printable(whole.node(meant.front()).name, 200),
                                   TextOf(PipelineStage{own.stages, next - starts.begin() - 1})));
    }
  }
  return Done{};
}

// Only a single device with the whole model can offload values to the host.
Result<Done> CheckOffloadOfDevice(const PlanRequest& request) {
  if (!request.offload || !IsPartOfModel(request)) return Done{};
  if (request.pipeline) {
    return ExclusiveFieldError(
        "offloading cannot be combined with a pipeline: the micro-batches in flight share the "
        "link and the host's memory",
        "offload");
  }
  return ExclusiveFieldError(
      "offloading cannot be combined with sharded constants: gathering them shares the links "
      "and the host",
      "offload");
}

}  // namespace

Bytes SumBuffers(const std::vector<Parameter>& parameters) {
  Bytes buffers(0);
  for (const Parameter& parameter : parameters) {
    if (parameter.kind == Parameter::Kind::kBuffer) buffers += parameter.bytes;
  }
  return buffers;
}

Result<Done> CheckDeviceRequest(const PlanRequest& request) {
  if (!request.pipeline) {
    if (HasPipelineFields(request)) {
      return Error{ErrorCode::kUsage,
                   "micro-batches, their schedule and stage cuts need a pipeline",
                   {},
                   {"add", {{"pipeline", "STAGES/INDEX"}}}};
    }
  } else if (request.micro_batches == 0) {
    return Error{ErrorCode::kUsage,
                 "a pipeline needs the number of micro-batches in a step",
                 {},
                 {"add", {{"micro_batches", "N"}}}};
  }
  CKPLAN_RETURN_IF_ERROR(CheckOffloadOfDevice(request));
  if (request.gradients != ParameterGradients::kArriving) return Done{};
  if (request.pipeline) {
    return ExclusiveFieldError(
        "arriving gradients cannot be combined with micro-batches, which accumulate gradients "
        "over the whole step",
        "gradients");
  }
  if (!request.sharding) return Done{};
  return ExclusiveFieldError(
      "arriving gradients cannot be combined with sharded gradients, which are never held "
      "whole",
      "gradients");
}

bool IsPartOfModel(const PlanRequest& request) {
  return request.sharding.has_value() || request.pipeline.has_value();
}

Result<Done> ReduceToDevice(const std::vector<Parameter>& parameters, Source* source) {
  const PlanRequest& request = source->request;
  std::vector<Parameter> own = parameters;
  TensorGraphParts parts = PartsOf(source->graph);
  if (request.pipeline) {
    CKPLAN_ASSIGN_OR_RETURN(const std::vector<NodeId> starts,
                            StartsOfStages(source->graph, source->modules, request.pipeline->stages,
                                           request.stage_cuts));
    CKPLAN_RETURN_IF_ERROR(CheckPatterns(source->graph, starts, request));
    const NodeRange nodes =
        NodesOfStage(starts, request.pipeline->index, source->graph.nodes().size());
    own = ParametersReadBy(nodes, parameters);
    StageGraph stage = CutStage(source->graph, nodes);
    parts = std::move(stage.parts);
    parts.micro_batches =
        MicroBatchesInFlight(*request.pipeline, request.micro_batches, request.schedule);
    Renumber(nodes, stage.tensor_of, source);
  }
  ShardedConstants constants = WholeConstants(own);
  if (request.sharding) {
    CKPLAN_ASSIGN_OR_RETURN(constants, ShardConstants(own, *request.sharding));
  }
  SetConstants(constants, &parts);
  source->buffers = SumBuffers(own);
  CKPLAN_ASSIGN_OR_RETURN(source->graph, TensorGraph::Create(std::move(parts)));
  return Done{};
}

}  // namespace ckplan
