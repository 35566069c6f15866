#include "train.h"

#include <muster_report.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/training/broadcast.h"
#include "muster/training/checkpoint.h"
#include "muster/training/distributed_optimizer.h"
#include "muster/training/distributed_sampler.h"
#include "muster/training/sync_batch_norm.h"
#include "report.h"
#include "resnet.h"

namespace muster::resnet20 {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;
using training::DistributedOptimizer;
using training::DistributedSampler;
using Clock = std::chrono::steady_clock;

constexpr double kMomentum = 0.9;
constexpr double kWeightDecay = 1e-4;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Options& options,
                                                      const ResNet20& model) {
  if (options.optimizer == Optimizer::kAdam) {
    return std::make_unique<torch::optim::Adam>(
        model->parameters(), torch::optim::AdamOptions(options.learning_rate.value_or(0.001)));
  }
  return std::make_unique<torch::optim::SGD>(
      model->parameters(), torch::optim::SGDOptions(options.learning_rate.value_or(0.05))
                               .momentum(options.optimizer == Optimizer::kMomentum ? kMomentum : 0)
                               .weight_decay(kWeightDecay));
}

training::Compression compression_of(Compress compress) {
  switch (compress) {
    case Compress::kFloat16:
      return training::Compression::kFloat16;
    case Compress::kBFloat16:
      return training::Compression::kBFloat16;
    case Compress::kNone:
      break;
  }
  return training::Compression::kNone;
}

MakeNorm norms_of(Session& session, const Options& options) {
  if (!options.sync_batch_norm) return batch_norm;
  return [&session](const std::string& name, std::int64_t features) {
    return torch::nn::AnyModule(training::SyncBatchNorm(
        session, name, training::SyncBatchNormOptions{.features = features}));
  };
}

struct Batch {
  torch::Tensor images;
  torch::Tensor labels;
};

Batch batch_of(const ImageSet& set, const std::vector<std::uint64_t>& samples) {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{torch::empty({count, kChannels, kSide, kSide}), torch::empty({count}, torch::kInt64)};
  fill_batch(set, samples, batch.images.data_ptr<float>(), batch.labels.data_ptr<std::int64_t>());
  return batch;
}

std::uint64_t checksum_of(const ResNet20& model) {
  std::uint64_t checksum = kChecksumStart;
  for (const torch::Tensor& parameter : model->parameters()) {
    const torch::Tensor bytes = parameter.detach().contiguous();
    checksum = resnet20::checksum_of(bytes.data_ptr(), bytes.nbytes(), checksum);
  }
  return checksum;
}

class Training {
 public:
  Training(Session& session, const Dataset& data, const Options& options,
           DistributedSampler sampler)
      : session_(session),
        data_(data),
        options_(options),
        sampler_(std::move(sampler)),
        model_(norms_of(session, options)),
        inner_(optimizer_of(options, model_)) {}

  Status run() {
    if (Status ready = begin(); !ready) return ready;
    const std::uint64_t last = options_.num_warmup_batches + options_.num_batches;
    while (progress_.step < last) {
      if (progress_.step <= options_.num_warmup_batches) timed_from_ = Clock::now();
      const Result<double> loss = step();
      if (!loss) return loss.error();
      if (Status shown = show(*loss); !shown) return shown;
      const bool keep = progress_.step == last || progress_.step % options_.checkpoint_every == 0;
      if (Status kept = keep ? this->keep() : Status(); !kept) return kept;
    }
    return finish();
  }

 private:
  bool speaks() const { return session_.rank() == 0; }
  double images_of_step() const {
    return static_cast<double>(options_.batch_size) * session_.size();
  }

  void print(const std::string& text) const {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  // All ranks begin alike: with rank 0's random weights, or with its checkpoint.
  Status begin() {
    bool resumed = false;
    if (options_.resume) {
      const auto found = training::resume(session_, options_.checkpoint, *model_, *inner_);
      if (!found) return found.error();
      if (found->has_value()) {
        progress_ = **found;
        resumed = true;
        sampler_.set_epoch(progress_.epoch);
        sampler_.seek(progress_.samples / static_cast<std::uint64_t>(session_.size()));
      }
    }
    if (!resumed) {
      if (Status sent = training::broadcast_parameters(session_, *model_); !sent) return sent;
    }
    auto distributed = DistributedOptimizer::over(
        session_, *model_, *inner_, {.compression = compression_of(options_.compress)});
    if (!distributed) return distributed.error();
    optimizer_ = *std::move(distributed);
    model_->train();
    timed_from_ = Clock::now();
    if (speaks() && options_.output == Output::kText) {
      if (resumed) print("resumed after step " + std::to_string(progress_.step) + "\n");
      print(text_of_start(options_, session_.size(), data_.train.size()));
    }
    return {};
  }

  // Full batches only, since the images of a smaller batch would have more weight.
  std::vector<std::uint64_t> next_samples() {
    const auto count = static_cast<std::uint64_t>(options_.batch_size);
    std::vector<std::uint64_t> samples;
    while (samples.size() < count) {
      const auto part = sampler_.next(count - samples.size());
      samples.insert(samples.end(), part.begin(), part.end());
      if (samples.size() < count) sampler_.set_epoch(sampler_.epoch() + 1);
    }
    return samples;
  }

  Result<double> step() {
    const Clock::time_point begin = Clock::now();
    const Batch batch = batch_of(data_.train, next_samples());
    optimizer_->zero_grad();
    torch::Tensor loss;
    try {
      loss = torch::nn::functional::cross_entropy(model_(batch.images), batch.labels);
      loss.backward();
    } catch (const training::CollectiveFailure& failure) {
      return failure.error();
    } catch (const std::exception& thrown) {
      return Error{ErrorCode::kSystem, std::string("the step failed: ") + thrown.what()};
    }
    if (Status stepped = optimizer_->step(); !stepped) return stepped.error();
    ++progress_.step;
    progress_.epoch = sampler_.epoch();
    progress_.samples = sampler_.position() * static_cast<std::uint64_t>(session_.size());
    if (progress_.step > options_.num_warmup_batches) seconds_.push_back(seconds_since(begin));
    return loss.item<double>();
  }

  Status show(double loss) {
    if (seconds_.empty()) return {};
    const std::uint64_t timed = progress_.step - options_.num_warmup_batches;
    if (timed != 1 && timed % options_.display_every != 0) return {};
    if (Status averaged = reduce(&loss, 1, collective::DataType::kFloat64, ReduceOp::kAverage);
        !averaged) {
      return averaged;
    }
    if (!speaks()) return {};
    const StepLine line{timed, speed_of(seconds_, images_of_step()), loss};
    print(options_.output == Output::kJson ? json_of(line) : text_of(line));
    muster::report({{"step", static_cast<double>(timed)},
                    {"steps", static_cast<double>(options_.num_batches)},
                    {"loss", loss},
                    {"images_per_second", line.speed.mean}});
    return {};
  }

  Status keep() {
    if (options_.checkpoint.empty()) return {};
    return training::save(session_, options_.checkpoint, *model_, *inner_, progress_);
  }

  Status finish() {
    // No step remains if the resumed checkpoint was the last one.
    const double total =
        seconds_.empty()
            ? 0
            : images_of_step() * static_cast<double>(seconds_.size()) / seconds_since(timed_from_);
    const Result<double> accuracy = test_accuracy();
    if (!accuracy) return accuracy.error();
    std::vector<std::uint64_t> checksums(static_cast<std::size_t>(session_.size()));
    checksums[static_cast<std::size_t>(session_.rank())] = checksum_of(model_);
    if (Status gathered = reduce(checksums.data(), checksums.size(), collective::DataType::kUInt64,
                                 ReduceOp::kSum);
        !gathered) {
      return gathered;
    }
    if (speaks()) {
      const Summary summary{total, *accuracy, checksums};
      print(options_.output == Output::kJson ? json_of(summary) : text_of(summary));
    }
    for (std::size_t rank = 1; rank < checksums.size(); ++rank) {
      if (checksums[rank] == checksums.front()) continue;
      return Error{ErrorCode::kMismatch,
                   "rank " + std::to_string(rank) + " has other weights than rank 0"};
    }
    return {};
  }

  // Each rank scores every size-th test image, and the counts are added up.
  Result<double> test_accuracy() {
    if (data_.test.size() == 0) return std::nan("");
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto ranks = static_cast<std::uint64_t>(session_.size());
    double correct = 0;
    std::vector<std::uint64_t> samples;
    const auto count = [&] {
      if (samples.empty()) return;
      const Batch batch = batch_of(data_.test, samples);
      correct += model_(batch.images).argmax(1).eq(batch.labels).sum().item<double>();
      samples.clear();
    };
    for (auto i = static_cast<std::uint64_t>(session_.rank()); i < data_.test.size(); i += ranks) {
      samples.push_back(i);
      if (samples.size() == static_cast<std::size_t>(options_.batch_size)) count();
    }
    count();
    model_->train();
    if (Status added = reduce(&correct, 1, collective::DataType::kFloat64, ReduceOp::kSum);
        !added) {
      return added.error();
    }
    return correct / static_cast<double>(data_.test.size());
  }

  Status reduce(void* data, std::uint64_t count, collective::DataType type, ReduceOp op) {
    const Result<Ticket> ticket =
        session_.all_reduce("resnet20.report", data, data, count, type, op);
    return ticket ? session_.wait(*ticket) : Status(ticket.error());
  }

  Session& session_;
  const Dataset& data_;
  const Options& options_;
  DistributedSampler sampler_;
  ResNet20 model_;
  std::unique_ptr<torch::optim::Optimizer> inner_;
  std::unique_ptr<DistributedOptimizer> optimizer_;
  training::Progress progress_;
  Clock::time_point timed_from_ = {};
  std::vector<double> seconds_;  // of each timed step
};

int complain(const Session& session, const std::string& sentence) {
  std::fprintf(stderr, "rank %d: %s\n", session.rank(), sentence.c_str());
  return 1;
}

}  // namespace

int train(Session& session, const Dataset& data, const Options& options) {
  torch::set_num_threads(options.threads);
  torch::manual_seed(options.seed);
  auto sampler = DistributedSampler::create({.samples = data.train.size(),
                                             .rank = session.rank(),
                                             .size = session.size(),
                                             .seed = options.seed});
  if (!sampler) return complain(session, sampler.error().to_string());
  const Status trained = Training(session, data, options, *std::move(sampler)).run();
  return trained ? 0 : complain(session, trained.error().to_string());
}

}  // namespace muster::resnet20
