// Plans a model within a share of its peak, by the installed library.
//
//   cmake -B build -DCMAKE_PREFIX_PATH=WHERE_CKPLAN_IS_INSTALLED && cmake --build build
//   build/embed model.onnx 60 plan.json N=64
#include <ckplan.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

namespace {

int Fail(const ckplan::Error& error) {
  std::cerr << "embed: " << error.message << "\n";
  for (const std::string& note : error.notes) std::cerr << "  " << note << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: embed MODEL PERCENT PLAN [DIMENSION=SIZE]...\n";
    return 2;
  }
  ckplan::PlanRequest request = ckplan::RequestAsPyTorchRuns();
  request.budget.kind = ckplan::Budget::Kind::kPercent;
  request.budget.percent = std::atof(argv[2]);
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t end = word.find('=');
    if (end == std::string::npos) {
      std::cerr << "embed: \"" << word << "\" is not DIMENSION=SIZE\n";
      return 2;
    }
    request.dims[word.substr(0, end)] = std::atoll(word.c_str() + end + 1);
  }

  const ckplan::Result<ckplan::Source> source = ckplan::LoadSource(argv[1], request);
  if (!source.ok()) return Fail(source.error());
  const ckplan::Result<ckplan::Plan> plan = ckplan::MakePlan(*source, source->request, {});
  if (!plan.ok()) return Fail(plan.error());

  std::ofstream(argv[3], std::ios::binary) << ckplan::WritePlanJson(*plan, source->step());
  std::cout << "peak " << plan->figures.peak.count() << " of "
            << plan->figures.baseline_peak.count() << " bytes, " << plan->figures.guarantee << "\n";
  return 0;
}
