// Requests for tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "lib/planning/plan/request.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {

// Gives a field a value that is not its default.
class FieldFiller {
 public:
  explicit FieldFiller(PlanRequest* request) : request_(*request) {}

  void operator()(const WordsMember& member) const {
    member.set(&request_, (member.get(PlanRequest()) + 1) % member.words.size());
  }
  void operator()(std::string PlanRequest::*member) const { request_.*member = "unit"; }
  void operator()(int64_t PlanRequest::*member) const { request_.*member = 8; }
  void operator()(bool PlanRequest::*member) const { request_.*member = !(PlanRequest().*member); }
  void operator()(Budget PlanRequest::*member) const {
    request_.*member = Budget::Of(Bytes(12345));
  }
  void operator()(DimSizes PlanRequest::*member) const {
    request_.*member = {{"N", 2}, {"a/b~\"c", 1}};
  }
  void operator()(InputShapes PlanRequest::*member) const { request_.*member = {{"x", {2, 3}}}; }
  void operator()(NamePatterns PlanRequest::*member) const {
    if (member == &PlanRequest::set_inputs) {
      request_.*member = {"n=[2,3]", "use_cache=1"};
    } else if (member == &PlanRequest::op_shapes) {
      request_.*member = {"acme::Norm=like:0;reads=x0"};
    } else {
      request_.*member = {"w", "!a\"b"};
    }
  }
  void operator()(std::optional<Sharding> PlanRequest::*member) const {
    request_.*member = {ShardingSystem::kZero1, 8};
  }
  void operator()(std::optional<PipelineStage> PlanRequest::*member) const {
    request_.*member = {4, 1};
  }
  void operator()(std::optional<KnobSetting> PlanRequest::*member) const {
    request_.*member = {"segments", 5};
  }
  void operator()(std::optional<Link> PlanRequest::*member) const {
    request_.*member = Link{"pcie5", 25'000'000'000, 26'500'000'000, 20'000, Duplex::kHalf};
  }
  void operator()(std::optional<Bytes> PlanRequest::*member) const {
    request_.*member = Bytes(12345);
  }
  void operator()(std::optional<Decisions> PlanRequest::*member) const {
    request_.*member = {Decisions::Form::kMirrorCounts, {}, {{{"a", -1}, 2}}, {}};
  }

 private:
  PlanRequest& request_;
};

// Returns a request in which no field has its default, for tests of the table of fields.
inline PlanRequest FullRequest() {
  PlanRequest full;
  for (const RequestField& field : RequestFields()) std::visit(FieldFiller(&full), field.member);
  full.algorithm = "chen-sqrt";
  full.workspaces = "file";  // The only value that plans have in this field.
  return full;
}

// Returns a minimal request for tests of the planner.
inline PlanRequest RequestFor(std::string_view algorithm, const Budget& budget) {
  PlanRequest request;
  request.algorithm = std::string(algorithm);
  request.budget = budget;
  return request;
}

}  // namespace ckplan
