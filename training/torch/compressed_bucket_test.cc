#include "compressed_bucket.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "muster/training/checkpoint.h"
#include "muster/training/sharded_optimizer.h"
#include "test_folder.h"
#include "test_world.h"

namespace muster::training {
namespace {

using collective::ErrorCode;
using collective::Session;
using collective::Status;
using torch::Tensor;

constexpr std::int64_t kRowsOfWeight = 40;
constexpr std::int64_t kColumnsOfWeight = 31;

// The gradient that a rank computes in a step; every rank can compute those of all.
Tensor gradient_of_weight(int step, int rank) {
  auto generator =
      torch::make_generator<torch::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * step + rank));
  return torch::randn({kRowsOfWeight, kColumnsOfWeight}, generator);
}

struct WeightImpl : torch::nn::Module {
  WeightImpl() {
    weight = register_parameter("weight", torch::zeros({kRowsOfWeight, kColumnsOfWeight}));
  }
  Tensor weight;
};
TORCH_MODULE(Weight);

std::unique_ptr<DistributedOptimizer> compressed(Session& session, const torch::nn::Module& model,
                                                 torch::optim::Optimizer& inner,
                                                 Compression compression, int rank = 2) {
  auto optimizer = DistributedOptimizer::over(
      session, model, inner,
      {.compression = compression, .power_sgd_rank = rank, .bucket_bytes = 1 << 20});
  EXPECT_TRUE(optimizer) << optimizer.error().to_string();
  return *std::move(optimizer);
}

// What one parameter of `steps` steps becomes, as `reduce` computes it.
void expect_steps(int ranks, Compression compression, double tolerance,
                  const std::function<Tensor(int step)>& expected) {
  spawn_sessions(ranks, [&](Session& session) {
    Weight model;
    torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = compressed(session, *model, inner, compression);
    for (int step = 0; step < 5; ++step) {
      optimizer->zero_grad();
      model->weight.mutable_grad() = gradient_of_weight(step, session.rank());
      const Status reduced = optimizer->synchronize();
      ASSERT_TRUE(reduced) << reduced.error().to_string();
      EXPECT_LE(distance(model->weight.grad(), expected(step)), tolerance) << "step " << step;
    }
  });
}

// int8 as the papers describe it, one element after the other, for all ranks at once.
class Int8Reference {
 public:
  explicit Int8Reference(int ranks)
      : ranks_(ranks),
        errors_(static_cast<std::size_t>(ranks), std::vector<float>(kElements)),
        error_of_average_(kElements) {
    const std::size_t together = kScaled * static_cast<std::size_t>(ranks);
    length_ = (kElements + together - 1) / together * together;
    for (std::vector<float>& error : errors_) error.resize(length_);
    error_of_average_.resize(length_);
  }

  std::vector<float> step(const std::vector<std::vector<float>>& gradients) {
    std::vector<float> average(length_);
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      std::vector<float> values = errors_[rank];
      for (std::size_t i = 0; i < kElements; ++i) values[i] = gradients[rank][i] + values[i];
      const std::vector<float> restored = quantised(values);
      for (std::size_t i = 0; i < length_; ++i) {
        errors_[rank][i] = values[i] - restored[i];
        average[i] += restored[i];
      }
    }
    for (std::size_t i = 0; i < length_; ++i) {
      average[i] = average[i] / static_cast<float>(ranks_) + error_of_average_[i];
    }
    std::vector<float> sent = quantised(average);
    for (std::size_t i = 0; i < length_; ++i) error_of_average_[i] = average[i] - sent[i];
    sent.resize(kElements);
    return sent;
  }

 private:
  static constexpr std::size_t kScaled = 512;
  static constexpr std::size_t kElements = kRowsOfWeight * kColumnsOfWeight;

  static std::vector<float> quantised(const std::vector<float>& values) {
    std::vector<float> restored(values.size());
    for (std::size_t begin = 0; begin < values.size(); begin += kScaled) {
      float largest = 0;
      for (std::size_t i = begin; i < begin + kScaled; ++i) {
        largest = std::max(largest, std::abs(values[i]));
      }
      const float scale = largest / 127;
      for (std::size_t i = begin; i < begin + kScaled; ++i) {
        restored[i] = std::nearbyint(values[i] / (scale > 0 ? scale : 1)) * scale;
      }
    }
    return restored;
  }

  int ranks_;
  std::size_t length_;
  std::vector<std::vector<float>> errors_;
  std::vector<float> error_of_average_;
};

Tensor mean_of_weights(int step, int ranks) {
  Tensor sum = torch::zeros({kRowsOfWeight, kColumnsOfWeight});
  for (int rank = 0; rank < ranks; ++rank) sum += gradient_of_weight(step, rank);
  return sum / ranks;
}

class Compressed : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Compressed, ::testing::Values(2, 3));

// The first step is not compressed.
TEST_P(Compressed, Int8IsThatOfTheReference) {
  const int ranks = GetParam();
  Int8Reference reference(ranks);
  std::vector<Tensor> expected = {mean_of_weights(0, ranks)};
  for (int step = 1; step < 5; ++step) {
    std::vector<std::vector<float>> gradients;
    for (int rank = 0; rank < ranks; ++rank) {
      const Tensor gradient = gradient_of_weight(step, rank);
      gradients.emplace_back(gradient.data_ptr<float>(),
                             gradient.data_ptr<float>() + gradient.numel());
    }
    const std::vector<float> sent = reference.step(gradients);
    expected.push_back(
        torch::tensor(sent, torch::kFloat32).view({kRowsOfWeight, kColumnsOfWeight}));
    // It does compress.
    EXPECT_GT(distance(expected.back(), mean_of_weights(step, ranks)), 1e-3);
  }
  expect_steps(ranks, Compression::kInt8, 1e-6,
               [&](int step) { return expected[static_cast<std::size_t>(step)]; });
}

// The result is the projection of the mean of all g + e on the space of (g + e) q, whatever basis of
// that space Gram-Schmidt finds.
TEST_P(Compressed, PowerSgdIsThatOfTheReference) {
  const int ranks = GetParam();
  const auto options = torch::kFloat64;
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(seed_of("weight"));
  Tensor q = torch::randn({kColumnsOfWeight, 2}, generator).to(options);
  std::vector<Tensor> errors(static_cast<std::size_t>(ranks),
                             torch::zeros({kRowsOfWeight, kColumnsOfWeight}, options));
  std::vector<Tensor> expected = {mean_of_weights(0, ranks)};
  for (int step = 1; step < 5; ++step) {
    Tensor mean = torch::zeros({kRowsOfWeight, kColumnsOfWeight}, options);
    std::vector<Tensor> values;
    for (int rank = 0; rank < ranks; ++rank) {
      values.push_back(gradient_of_weight(step, rank).to(options) +
                       errors[static_cast<std::size_t>(rank)]);
      mean += values.back() / ranks;
    }
    const Tensor p = std::get<0>(torch::linalg_qr(mean.matmul(q)));
    q = mean.t().matmul(p);
    const Tensor sent = p.matmul(q.t());
    for (int rank = 0; rank < ranks; ++rank) {
      errors[static_cast<std::size_t>(rank)] = values[static_cast<std::size_t>(rank)] - sent;
    }
    expected.push_back(sent.to(torch::kFloat32));
    EXPECT_GT(distance(expected.back(), mean_of_weights(step, ranks)), 0.1);
  }
  expect_steps(ranks, Compression::kPowerSgd, 1e-4,
               [&](int step) { return expected[static_cast<std::size_t>(step)]; });
}

// A model with matrices, vectors, and a part that no rank trains.
struct PartsImpl : torch::nn::Module {
  PartsImpl() {
    first = register_module("first", torch::nn::Linear(12, 30));
    last = register_module("last", torch::nn::Linear(30, 9));
    unused = register_module("unused", torch::nn::Linear(2, 2));
    const torch::NoGradGuard no_grad;
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(std::uint64_t{1});
    for (Tensor& parameter : parameters()) {
      parameter.copy_(0.3 * torch::randn(parameter.sizes(), generator));
    }
  }
  Tensor forward(const Tensor& x) { return last(torch::tanh(first(x))); }
  torch::nn::Linear first{nullptr}, last{nullptr}, unused{nullptr};
};
TORCH_MODULE(Parts);

void backward_of_parts(Parts& model, int step, int rank) {
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(
      static_cast<std::uint64_t>(1000 * step + rank));
  const Tensor x = torch::randn({6, 12}, generator);
  model(x).pow(2).mean().backward();
}

void train_parts(Parts& model, DistributedOptimizer& optimizer, int begin, int end, int rank) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    backward_of_parts(model, step, rank);
    const Status stepped = optimizer.step();
    ASSERT_TRUE(stepped) << stepped.error().to_string();
  }
}

bool have_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return false;
  }
  return a.size() == b.size();
}

std::vector<Tensor> clones_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> clones;
  for (const Tensor& tensor : tensors) clones.push_back(tensor.detach().clone());
  return clones;
}

TEST_P(Compressed, AllRanksGetTheSameBitsAndUntrainedPartsNoGradient) {
  const int ranks = GetParam();
  for (const Compression compression : {Compression::kInt8, Compression::kPowerSgd}) {
    std::vector<std::vector<Tensor>> ends(static_cast<std::size_t>(ranks));
    spawn_sessions(ranks, [&](Session& session) {
      Parts model;
      torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      const auto optimizer = compressed(session, *model, inner, compression);
      train_parts(model, *optimizer, 0, 6, session.rank());
      EXPECT_FALSE(model->unused->weight.grad().defined());
      // Only rank 0 has a gradient: the others count as zeros.
      optimizer->zero_grad();
      if (session.rank() == 0) model->unused->bias.mutable_grad() = torch::full({2}, 6.0);
      ASSERT_TRUE(optimizer->synchronize());
      ASSERT_TRUE(model->unused->bias.grad().defined());
      EXPECT_LE(distance(model->unused->bias.grad(), torch::full({2}, 6.0 / ranks)), 0.05);
      ends[static_cast<std::size_t>(session.rank())] = clones_of(model->parameters());
    });
    for (const auto& end : ends) EXPECT_TRUE(have_same_bits(end, ends[0]));
  }
}

TEST_P(Compressed, AnInfinitySpoilsOneStepOnly) {
  for (const Compression compression : {Compression::kInt8, Compression::kPowerSgd}) {
    spawn_sessions(GetParam(), [&](Session& session) {
      Weight model;
      torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
      const auto optimizer = compressed(session, *model, inner, compression);
      for (int step = 0; step < 4; ++step) {
        Tensor gradient = gradient_of_weight(step, session.rank());
        if (step == 2 && session.rank() == 1) {
          gradient[0][0] = std::numeric_limits<float>::infinity();
        }
        model->weight.mutable_grad() = gradient;
        ASSERT_TRUE(optimizer->synchronize());
        EXPECT_EQ(torch::isfinite(model->weight.grad()).all().item<bool>(), step != 2);
      }
    });
  }
}

TEST_P(Compressed, AResumedRunContinuesToTheSameBits) {
  const int ranks = GetParam();
  for (const Compression compression : {Compression::kInt8, Compression::kPowerSgd}) {
    const TestFolder folder;
    std::vector<Tensor> expected;
    spawn_sessions(ranks, [&](Session& session) {
      Parts model;
      torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      const auto optimizer = compressed(session, *model, inner, compression);
      for (const int step : {2, 4}) {  // the second checkpoint replaces the first
        train_parts(model, *optimizer, step - 2, step, session.rank());
        const Status kept =
            save(session, folder.path(), *model, inner, *optimizer,
                 {.epoch = 0, .step = static_cast<std::uint64_t>(step), .samples = 0});
        ASSERT_TRUE(kept) << kept.error().to_string();
      }
      train_parts(model, *optimizer, 4, 8, session.rank());
      if (session.rank() == 0) expected = clones_of(model->parameters());
    });
    for (const bool with_errors : {true, false}) {
      spawn_sessions(ranks, [&](Session& session) {
        Parts model;
        torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.5).momentum(0.9));
        const auto optimizer = compressed(session, *model, inner, compression);
        const auto progress = with_errors
                                  ? resume(session, folder.path(), *model, inner, *optimizer)
                                  : resume(session, folder.path(), *model, inner);
        ASSERT_TRUE(progress) << progress.error().to_string();
        ASSERT_TRUE(*progress);
        EXPECT_EQ((*progress)->step, 4u);
        train_parts(model, *optimizer, 4, 8, session.rank());
        EXPECT_EQ(have_same_bits(model->parameters(), expected), with_errors);
      });
    }
  }
}

TEST(CompressedErrors, OfAnotherTrainingAreRefusedOnEveryRank) {
  const TestFolder folder;
  spawn_sessions(3, [&](Session& session) {
    Parts model;
    torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = compressed(session, *model, inner, Compression::kInt8);
    train_parts(model, *optimizer, 0, 2, session.rank());
    ASSERT_TRUE(save(session, folder.path(), *model, inner, *optimizer, {.step = 2}));
    EXPECT_EQ(optimizer->restore_errors("nonsense").error().code, ErrorCode::kBadArgument);
    const std::string errors = optimizer->error_bytes();
    EXPECT_EQ(optimizer->restore_errors(errors.substr(0, errors.size() - 1)).error().code,
              ErrorCode::kBadArgument);
  });
  struct Case {
    int ranks;
    Compression compression;
    const char* words;
  };
  for (const Case& c : {Case{2, Compression::kInt8, "rank 0 of 3"},
                        Case{3, Compression::kPowerSgd, "with compression 3"}}) {
    spawn_sessions(c.ranks, [&](Session& session) {
      Parts model;
      torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
      const auto optimizer = compressed(session, *model, inner, c.compression);
      const auto progress = resume(session, folder.path(), *model, inner, *optimizer);
      ASSERT_FALSE(progress);
      EXPECT_EQ(progress.error().code, ErrorCode::kMismatch);
      EXPECT_NE(progress.error().message.find(c.words), std::string::npos)
          << progress.error().message;
    });
  }
}

TEST(CompressedErrors, ThatOnlySomeRanksSeeAreRefusedOnEveryRank) {
  const TestFolder folder;
  spawn_sessions(3, [&](Session& session) {
    Parts model;
    torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = compressed(session, *model, inner, Compression::kInt8);
    train_parts(model, *optimizer, 0, 2, session.rank());
    ASSERT_TRUE(save(session, folder.path(), *model, inner, *optimizer, {.step = 2}));
  });
  std::filesystem::remove_all(folder.path() + "/errors-0-2-0-1");
  spawn_sessions(3, [&](Session& session) {
    Parts model;
    torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = compressed(session, *model, inner, Compression::kInt8);
    const auto progress = resume(session, folder.path(), *model, inner, *optimizer);
    ASSERT_FALSE(progress);
    EXPECT_EQ(progress.error().code, ErrorCode::kMismatch);
    EXPECT_EQ(progress.error().message, "only some ranks see their errors of the checkpoint in " +
                                            folder.path() + ": rank 0 and rank 1 differ");
    // No rank has restored its errors.
    train_parts(model, *optimizer, 2, 4, session.rank());
  });
}

TEST(CompressedErrors, SettingsAreChecked) {
  spawn_sessions(2, [&](Session& session) {
    Parts model;
    torch::optim::SGD inner(model->parameters(), torch::optim::SGDOptions(0.1));
    EXPECT_EQ(ShardedOptimizer::over(session, *model, inner, {.compression = Compression::kInt8})
                  .error()
                  .code,
              ErrorCode::kBadArgument);
    const auto refused = DistributedOptimizer::over(
        session, *model, inner, {.compression = Compression::kPowerSgd, .power_sgd_rank = 0});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "power_sgd_rank is 0, not 1 or more");
  });
}

}  // namespace
}  // namespace muster::training
