#include "bucket.h"

#include <cstring>
#include <utility>

namespace muster::training {
namespace {

using collective::Error;
using collective::ReduceOp;
using collective::Reduction;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

torch::Tensor tensor_over(const FlatMemory& memory, std::int64_t elements, torch::ScalarType type) {
  return torch::from_blob(memory.data(), {elements}, torch::TensorOptions().dtype(type));
}

// A view with the parameter's memory layout, so that the optimizer walks both in one pass, and the
// autograd engine adds in place.
torch::Tensor view_like(const torch::Tensor& parameter, const torch::Tensor& flat,
                        std::int64_t begin) {
  if (parameter.is_non_overlapping_and_dense()) {
    return flat.as_strided(parameter.sizes(), parameter.strides(), begin);
  }
  return flat.narrow(0, begin, parameter.numel()).view(parameter.sizes());
}

void copy_into(torch::Tensor& view, const torch::Tensor& gradient) {
  if (gradient.is_sparse()) {
    view.copy_(gradient.to_dense());
  } else if (gradient.scalar_type() == view.scalar_type() && gradient.strides() == view.strides() &&
             view.is_non_overlapping_and_dense()) {
    std::memcpy(view.data_ptr(), gradient.data_ptr(), view.nbytes());
  } else {
    view.copy_(gradient);
  }
}

torch::ScalarType sent_as(torch::ScalarType type, Compression compression) {
  if (type != torch::kFloat32 && type != torch::kFloat64) return type;
  switch (compression) {
    case Compression::kNone:
      return type;
    case Compression::kFloat16:
      return torch::kFloat16;
    case Compression::kBFloat16:
      return torch::kBFloat16;
    case Compression::kInt8:
    case Compression::kPowerSgd:
      return type;
  }
  return type;
}

}  // namespace

Bucket::Bucket(Session& session, std::string name, std::vector<NamedTensor> parameters, ReduceOp op,
               Compression compression)
    : name_(std::move(name)), op_(op) {
  const torch::NoGradGuard no_grad;
  const auto marks = static_cast<std::int64_t>(parameters.size());
  std::int64_t gradients = 0;
  for (const NamedTensor& parameter : parameters) gradients += parameter.tensor.numel();
  const std::int64_t elements = gradients + marks;
  const torch::ScalarType type = parameters.front().tensor.scalar_type();
  const auto memory_of = [&](torch::ScalarType of) {
    return std::make_unique<FlatMemory>(
        session, static_cast<std::uint64_t>(elements) * torch::elementSize(of));
  };

  memory_ = memory_of(type);
  flat_ = tensor_over(*memory_, elements, type);
  marks_ = flat_.narrow(0, gradients, marks);
  sent_ = flat_;
  const torch::ScalarType sent_type = sent_as(type, compression);
  sent_type_ = *data_type_of(sent_type);
  if (sent_type != type) {
    compressed_memory_ = memory_of(sent_type);
    sent_ = tensor_over(*compressed_memory_, elements, sent_type);
  }
  std::int64_t begin = 0;
  for (NamedTensor& parameter : parameters) {
    torch::Tensor view = view_like(parameter.tensor, flat_, begin);
    begin += parameter.tensor.numel();
    slots_.push_back({std::move(parameter), std::move(view)});
  }
}

Bucket::~Bucket() {
  if (ticket_) {
    memory_->abandon();
    if (compressed_memory_) compressed_memory_->abandon();
  }
  for (Slot& slot : slots_) {
    if (lies_in_place(slot)) slot.parameter.tensor.mutable_grad().reset();
  }
}

bool Bucket::lies_in_place(const Slot& slot) const {
  const torch::Tensor& gradient = slot.parameter.tensor.grad();
  return gradient.defined() && !gradient.is_sparse() && gradient.data_ptr() == slot.view.data_ptr();
}

void Bucket::adopt(std::size_t slot_number) {
  Slot& slot = slots_[slot_number];
  torch::Tensor& gradient = slot.parameter.tensor.mutable_grad();
  if (!gradient.defined() || lies_in_place(slot)) return;
  const torch::NoGradGuard no_grad;
  copy_into(slot.view, gradient);
  gradient = slot.view;
}

Status Bucket::launch(Session& session) {
  const torch::NoGradGuard no_grad;
  marks_.fill_(1);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    adopt(i);
    if (slots_[i].parameter.tensor.grad().defined()) continue;
    slots_[i].view.zero_();
    marks_[static_cast<std::int64_t>(i)] = 0;
  }
  if (compressed_memory_) sent_.copy_(flat_);
  const Result<Ticket> ticket =
      session.all_reduce(name_, sent_.data_ptr(), sent_.data_ptr(),
                         static_cast<std::uint64_t>(sent_.numel()), sent_type_, Reduction(op_));
  if (!ticket) return explained(ticket.error());
  ticket_ = *ticket;
  return {};
}

Status Bucket::finish(Session& session) {
  const Status reduced = session.wait(*std::exchange(ticket_, std::nullopt));
  if (!reduced) return explained(reduced.error());
  const torch::NoGradGuard no_grad;
  if (compressed_memory_) flat_.copy_(sent_);
  const torch::Tensor marks = marks_.to(torch::kFloat64);
  const auto some_rank_has = marks.accessor<double, 1>();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    torch::Tensor& gradient = slots_[i].parameter.tensor.mutable_grad();
    if (some_rank_has[static_cast<std::int64_t>(i)] == 0) {
      gradient.reset();
    } else if (!gradient.defined()) {
      gradient = slots_[i].view;
    }
  }
  return {};
}

Error Bucket::explained(const Error& error) const {
  std::vector<NamedTensor> parameters;
  for (const Slot& slot : slots_) parameters.push_back(slot.parameter);
  return explain(parameters, error);
}

Error explain(const std::vector<NamedTensor>& parameters, const Error& error) {
  Error explained = error;
  std::string names = "'" + parameters.front().name + "'";
  if (parameters.size() == 2) names += " and '" + parameters.back().name + "'";
  if (parameters.size() > 2) {
    names += " to '" + parameters.back().name + "' (" + std::to_string(parameters.size()) +
             " parameters)";
  }
  explained.message = "the gradients of " + names + " could not be reduced: " + error.message;
  return explained;
}

namespace {

class PostHook : public torch::autograd::FunctionPostHook {
 public:
  explicit PostHook(std::function<void()> then) : then_(std::move(then)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    then_();
    return outputs;
  }

 private:
  std::function<void()> then_;
};

}  // namespace

void ReadyHooks::add(const torch::Tensor& parameter, std::function<void()> then) {
  std::shared_ptr<torch::autograd::Node> node = torch::autograd::impl::grad_accumulator(parameter);
  const std::uintptr_t key = node->add_post_hook(std::make_unique<PostHook>(std::move(then)));
  hooks_.push_back({std::move(node), key});
}

ReadyHooks::~ReadyHooks() {
  for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
}

}  // namespace muster::training
