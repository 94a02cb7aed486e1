#include "lib/joint/simulate_runs.h"

#include <algorithm>
#include <vector>

namespace ckplan {
namespace {

class PeakSink : public RunSink {
 public:
  explicit PeakSink(const JointGraph& graph) : graph_(graph) {}

  void Allocate(int32_t /*buffer*/, ValueId first_value) override {
    sizes_.push_back(graph_.value(first_value).bytes);
    live_ += sizes_.back();
  }
  void Make(ValueId /*value*/, int32_t /*buffer*/) override {}
  void Workspace(OpId op) override {
    const Bytes needed = live_ + graph_.op(op).workspace;
    if (step_ > 0 && needed <= simulation_.peak) return;
    simulation_.peak = needed;
    simulation_.peak_step = step_;
  }
  void Release(int32_t buffer) override { live_ -= sizes_[static_cast<size_t>(buffer)]; }
  void EndStep(OpId op) override {
    simulation_.cost += graph_.op(op).cost;
    ++step_;
  }

  const RunSimulation& simulation() const { return simulation_; }

 private:
  const JointGraph& graph_;
  std::vector<Bytes> sizes_;  // Of each buffer.
  Bytes live_;
  size_t step_ = 0;
  RunSimulation simulation_;
};

}  // namespace

RunSimulator::RunSimulator(const JointGraph& graph) : graph_(graph), replay_(graph) {}

Result<RunSimulation> RunSimulator::Run(std::span<const OpId> runs) {
  PeakSink sink(graph_);
  CKPLAN_RETURN_IF_ERROR(replay_.Run(runs, &sink));
  return sink.simulation();
}

Bytes OwnOrderPeak(const JointGraph& graph) {
  return RunSimulator(graph).Run(OwnOrder(graph)).value().peak;
}

}  // namespace ckplan
