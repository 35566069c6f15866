#include "muster/training/sync_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "exchange.h"

namespace muster::training {
namespace {

using collective::DataType;
using collective::ReduceOp;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// The session and the name of the module, for the backward pass.
struct Bond : torch::CustomClassHolder {
  Bond(Session& with, std::string called) : session(with), name(std::move(called)) {}

  Session& session;
  std::string name;
};

// All dimensions except dimension 1.
std::vector<std::int64_t> others(const Tensor& input) {
  std::vector<std::int64_t> dimensions;
  for (std::int64_t i = 0; i < input.dim(); ++i) {
    if (i != 1) dimensions.push_back(i);
  }
  return dimensions;
}

// One value for each channel, shaped for broadcasting over `like`, and of its type.
Tensor spread(const Tensor& channels, const Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[1] = channels.numel();
  return channels.to(like.scalar_type()).view(shape);
}

Tensor to_tensor(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64);
}

// 16-bit floats have too few digits for sums, so they are converted to float32.
Tensor wide(const Tensor& tensor) {
  const bool narrow =
      tensor.scalar_type() == torch::kFloat16 || tensor.scalar_type() == torch::kBFloat16;
  return narrow ? tensor.to(torch::kFloat32) : tensor;
}

struct ChannelStatistics {
  double count = 0;             // values per channel; all channels have equally many
  std::vector<double> mean;     // of each channel
  std::vector<double> squares;  // sum of the squared deviations from the mean, of each channel
};

// Statistics of the union of several parts, by the pairwise formula of Chan, Golub and LeVeque.
// Each part is laid out as count, means of `channels` channels, squares of `channels` channels. A
// part without values changes nothing.
ChannelStatistics combine(std::span<const double> parts, std::size_t channels) {
  ChannelStatistics whole{0, std::vector<double>(channels), std::vector<double>(channels)};
  const std::size_t stride = 1 + 2 * channels;
  for (std::size_t begin = 0; begin + stride <= parts.size(); begin += stride) {
    const double count = parts[begin];
    if (count == 0) continue;
    const std::span<const double> mean = parts.subspan(begin + 1, channels);
    const std::span<const double> squares = parts.subspan(begin + 1 + channels, channels);
    const double total = whole.count + count;
    for (std::size_t c = 0; c < channels; ++c) {
      const double apart = mean[c] - whole.mean[c];
      whole.mean[c] += apart * (count / total);
      whole.squares[c] += squares[c] + apart * apart * (whole.count * (count / total));
    }
    whole.count = total;
  }
  return whole;
}

// The statistics of this rank's input, laid out as combine() reads them.
std::vector<double> statistics_of(const Tensor& input) {
  const auto channels = static_cast<std::size_t>(input.size(1));
  std::vector<double> statistics(1 + 2 * channels);
  if (input.numel() == 0) return statistics;
  const double count = static_cast<double>(input.numel()) / static_cast<double>(channels);
  const auto [variance, mean] = torch::var_mean(wide(input), others(input), /*unbiased=*/false);
  const Tensor means = mean.to(torch::kFloat64).contiguous();
  const Tensor squares = (variance.to(torch::kFloat64) * count).contiguous();
  statistics[0] = count;
  std::memcpy(&statistics[1], means.data_ptr(), channels * sizeof(double));
  std::memcpy(&statistics[1 + channels], squares.data_ptr(), channels * sizeof(double));
  return statistics;
}

ChannelStatistics statistics_of_all(Session& session, const std::string& name,
                                    const Tensor& input) {
  const std::vector<double> mine = statistics_of(input);
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                               mine.size() * sizeof(double));
  const Result<std::vector<std::string>> all = gather(session, name, bytes);
  if (!all) throw CollectiveFailure(all.error());
  std::vector<double> parts;
  for (const std::string& part : *all) {
    std::vector<double> values(part.size() / sizeof(double));
    std::memcpy(values.data(), part.data(), values.size() * sizeof(double));
    if (values.size() != mine.size()) {
      throw CollectiveFailure(
          {collective::ErrorCode::kMismatch,
           "the ranks have inputs of '" + name + "' with different numbers of channels"});
    }
    parts.insert(parts.end(), values.begin(), values.end());
  }
  return combine(parts, static_cast<std::size_t>(input.size(1)));
}

void add_up(Session& session, const std::string& name, Tensor& values) {
  const Result<Ticket> ticket = session.all_reduce(name, values.data_ptr(), values.data_ptr(),
                                                   static_cast<std::uint64_t>(values.numel()),
                                                   DataType::kFloat64, ReduceOp::kSum);
  const Status added = ticket ? session.wait(*ticket) : Status(ticket.error());
  if (!added) throw CollectiveFailure(added.error());
}

// y = (x - mean) * scale * weight + bias, where mean and scale depend on the x of all ranks: dx
// must account for the influence of x on them.
struct Normalise : torch::autograd::Function<Normalise> {
  static Tensor forward(AutogradContext* context, const Tensor& input,
                        const c10::optional<Tensor>& weight, const c10::optional<Tensor>& bias,
                        const Tensor& mean, const Tensor& scale, double count,
                        c10::intrusive_ptr<Bond> bond) {
    context->save_for_backward({input, weight.value_or(Tensor()), mean, scale});
    context->saved_data["count"] = count;
    context->saved_data["bond"] = torch::IValue::make_capsule(std::move(bond));
    Tensor slope = scale;
    if (weight) slope = slope * weight->to(torch::kFloat64);
    Tensor output = (input - spread(mean, input)).mul_(spread(slope, input));
    if (bias) output.add_(spread(*bias, input));
    return output;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(), "SyncBatchNorm cannot be differentiated twice");
    const tensor_list saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &scale = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const auto bond =
        c10::static_intrusive_pointer_cast<Bond>(context->saved_data["bond"].toCapsule());
    const std::int64_t channels = mean.numel();

    const Tensor& gradient = gradients[0];
    const Tensor normal = (input - spread(mean, input)).mul_(spread(scale, input));
    Tensor sums = torch::zeros({2, channels}, torch::kFloat64);
    sums[0] = wide(gradient).sum(others(input));
    sums[1] = wide(gradient * normal).sum(others(input));
    const Tensor own = sums.clone();
    add_up(bond->session, bond->name + ".backward", sums);

    const Tensor means = sums / count;
    Tensor slope = scale;
    if (weight.defined()) slope = slope * weight.to(torch::kFloat64);
    Tensor input_gradient = gradient - spread(means[0], input);
    input_gradient.sub_(normal * spread(means[1], input)).mul_(spread(slope, input));
    const auto of_parameter = [&](std::int64_t row) {
      return weight.defined() ? own[row].to(weight.scalar_type()) : Tensor();
    };
    return {input_gradient, of_parameter(1), of_parameter(0), Tensor(),
            Tensor(),       Tensor(),        Tensor()};
  }
};

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(Session& session, std::string name,
                                     const SyncBatchNormOptions& options)
    : session_(session), name_("sync_batch_norm." + std::move(name)), options_(options) {
  TORCH_CHECK(options.features > 0, "SyncBatchNorm requires features above 0, not ",
              options.features);
  if (options.affine) {
    weight = register_parameter("weight", torch::ones({options.features}));
    bias = register_parameter("bias", torch::zeros({options.features}));
  }
  if (options.track_running_stats) {
    running_mean = register_buffer("running_mean", torch::zeros({options.features}));
    running_var = register_buffer("running_var", torch::ones({options.features}));
    num_batches_tracked = register_buffer("num_batches_tracked", torch::tensor(0, torch::kInt64));
  }
}

// The weight of this batch in the running statistics.
double SyncBatchNormImpl::next_momentum() {
  num_batches_tracked.add_(1);
  return options_.momentum ? *options_.momentum : 1.0 / num_batches_tracked.item<double>();
}

Tensor SyncBatchNormImpl::normalise_alone(const Tensor& input) {
  const bool uses_batch = is_training() || !running_mean.defined();
  const bool tracks = is_training() && running_mean.defined();
  const double momentum = tracks ? next_momentum() : 0;
  return torch::batch_norm(input, weight, bias, running_mean, running_var, uses_batch, momentum,
                           options_.eps, /*cudnn_enabled=*/false);
}

Tensor SyncBatchNormImpl::forward(const Tensor& input) {
  TORCH_CHECK(input.dim() >= 2 && input.size(1) == options_.features, "SyncBatchNorm '", name_,
              "' got an input of shape ", input.sizes(), ", not [batch, ", options_.features,
              ", ...]");
  if (!is_training() || session_.size() == 1) return normalise_alone(input);

  const ChannelStatistics all = statistics_of_all(session_, name_ + ".forward", input.detach());
  TORCH_CHECK(all.count > 1, "SyncBatchNorm '", name_, "' got ", all.count,
              " values per channel on all ranks together: a variance requires two");
  const Tensor mean = to_tensor(all.mean);
  const Tensor squares = to_tensor(all.squares);
  if (running_mean.defined()) {
    const torch::NoGradGuard no_grad;
    const double momentum = next_momentum();
    running_mean.lerp_(mean.to(running_mean.scalar_type()), momentum);
    running_var.lerp_((squares / (all.count - 1)).to(running_var.scalar_type()), momentum);
  }
  const Tensor scale = (squares / all.count).add_(options_.eps).rsqrt_();
  // Functions of torch 1.13 accept no undefined tensors, but an optional tensor may be missing.
  const auto if_defined = [](const Tensor& tensor) {
    return tensor.defined() ? c10::optional<Tensor>(tensor) : c10::nullopt;
  };
  return Normalise::apply(input, if_defined(weight), if_defined(bias), mean, scale, all.count,
                          c10::make_intrusive<Bond>(session_, name_));
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "muster::training::SyncBatchNorm(" << options_.features << ", eps=" << options_.eps
         << ", over " << session_.size() << " ranks)";
}

}  // namespace muster::training
