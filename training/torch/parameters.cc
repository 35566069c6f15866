#include "parameters.h"

#include <map>
#include <sstream>
#include <utility>

namespace muster::training {

using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Status;

namespace {

class Faults {
 public:
  void add(const std::string& sentence) { text_ += (text_.empty() ? "" : "; ") + sentence; }
  Status status() const {
    return text_.empty() ? Status() : Status(Error{ErrorCode::kBadArgument, text_});
  }

 private:
  std::string text_;
};

std::map<const void*, std::string> names_in(const torch::nn::Module& model) {
  std::map<const void*, std::string> name_of;
  for (const auto& item : model.named_parameters()) {
    name_of[item.value().unsafeGetTensorImpl()] = item.key();
  }
  return name_of;
}

std::string place_in(std::size_t group, std::size_t index) {
  return "parameter " + std::to_string(index) + " of the optimizer's group " +
         std::to_string(group);
}

std::string why_not(const torch::Tensor& parameter) {
  if (!parameter.device().is_cpu()) {
    return "is on " + parameter.device().str() + ", not in host memory";
  }
  if (parameter.layout() != torch::kStrided) return "is not a dense tensor";
  const auto type = data_type_of(parameter.scalar_type());
  if (!type || !collective::is_float(*type)) {
    return "is of type " + type_name(parameter.scalar_type()) + ", not a float";
  }
  return "";
}

}  // namespace

Status check(const OptimizerSettings& settings) {
  Faults faults;
  if (settings.op != ReduceOp::kAverage && settings.op != ReduceOp::kSum) {
    faults.add("gradients can be averaged or summed, but op is " +
               std::string(collective::to_string(settings.op)));
  }
  if (settings.passes_per_step < 1) {
    faults.add("passes_per_step is " + std::to_string(settings.passes_per_step) +
               ", not 1 or more");
  }
  if (settings.power_sgd_rank < 1) {
    faults.add("power_sgd_rank is " + std::to_string(settings.power_sgd_rank) + ", not 1 or more");
  }
  if (settings.bucket_bytes == 0) faults.add("bucket_bytes is 0");
  if (settings.name.empty()) faults.add("name is empty");
  return faults.status();
}

Result<std::vector<NamedTensor>> parameters_of(const torch::nn::Module& model,
                                               const torch::optim::Optimizer& optimizer) {
  const std::map<const void*, std::string> name_of = names_in(model);
  std::vector<NamedTensor> parameters;
  Faults faults;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const std::vector<torch::Tensor>& group = optimizer.param_groups()[g].params();
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!group[i].requires_grad()) continue;
      const auto found = name_of.find(group[i].unsafeGetTensorImpl());
      if (found == name_of.end()) {
        faults.add(place_in(g, i) + " is not a parameter of the model");
        continue;
      }
      const std::string fault = why_not(group[i]);
      if (!fault.empty()) faults.add("'" + found->second + "' " + fault);
      parameters.push_back({found->second, group[i]});
    }
  }
  if (parameters.empty()) faults.add("the optimizer has no parameter that requires a gradient");
  if (Status status = faults.status(); !status) return status.error();
  return parameters;
}

std::set<const void*> identities_of(const std::vector<torch::Tensor>& parameters) {
  std::set<const void*> identities;
  for (const torch::Tensor& parameter : parameters) {
    identities.insert(parameter.unsafeGetTensorImpl());
  }
  return identities;
}

Status check_group(const std::set<const void*>& trained, const torch::nn::Module& model,
                   const std::vector<torch::Tensor>& group, std::size_t number) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const void* const identity = group[i].unsafeGetTensorImpl();
    if (!group[i].requires_grad() || trained.contains(identity)) continue;
    const auto name_of = names_in(model);
    const auto found = name_of.find(identity);
    const std::string name =
        found == name_of.end() ? place_in(number, i) : "'" + found->second + "'";
    return Error{ErrorCode::kBadArgument,
                 name +
                     " requires a gradient, but was not trained when this distributed optimizer "
                     "was created",
                 "create the distributed optimizer anew after unfreezing or adding parameters"};
  }
  return {};
}

void reset_gradients(const std::vector<torch::Tensor>& parameters) {
  for (const torch::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

std::vector<std::string> description(const std::vector<NamedTensor>& parameters,
                                     const OptimizerSettings& settings) {
  std::ostringstream first;
  first << "op " << collective::to_string(settings.op) << ", compression "
        << static_cast<int>(settings.compression) << " of rank " << settings.power_sgd_rank << ", "
        << settings.passes_per_step << " passes a step, buckets of " << settings.bucket_bytes
        << " bytes";
  std::vector<std::string> lines = {first.str()};
  for (const NamedTensor& parameter : parameters) {
    std::ostringstream line;
    line << describe(parameter) << " strides";
    for (const std::int64_t stride : parameter.tensor.strides()) line << ' ' << stride;
    lines.push_back(line.str());
  }
  return lines;
}

std::vector<GradientShape> shapes_of(const std::vector<NamedTensor>& parameters) {
  std::vector<GradientShape> shapes;
  for (const NamedTensor& parameter : parameters) {
    shapes.push_back({static_cast<std::uint64_t>(parameter.tensor.numel()),
                      *data_type_of(parameter.tensor.scalar_type())});
  }
  return shapes;
}

}  // namespace muster::training
