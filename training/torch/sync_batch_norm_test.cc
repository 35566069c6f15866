#include "muster/training/sync_batch_norm.h"

#include <string>
#include <vector>

#include "test_world.h"

namespace muster::training {
namespace {

using collective::Session;
using torch::Tensor;

struct BatchCase {
  const char* name;
  std::vector<std::int64_t> batches;  // of each rank
  std::vector<std::int64_t> shape;    // of a sample, channels first
  double offset = 0;                  // added to all inputs
};

constexpr std::int64_t kChannels = 5;

// Sets values that are equal on every rank. They are not random, since the ranks are threads and
// share torch's generator.
void set_unlike(const Tensor& weight, const Tensor& bias) {
  weight.detach().copy_(torch::linspace(0.5, 3, kChannels, torch::kFloat64));
  bias.detach().copy_(torch::linspace(-1, 2, kChannels, torch::kFloat64));
}

SyncBatchNorm make_norm(Session& session, const SyncBatchNormOptions& options = {kChannels}) {
  SyncBatchNorm norm(session, "norm", options);
  norm->to(torch::kFloat64);
  return norm;
}

class Concatenated : public ::testing::TestWithParam<BatchCase> {};

INSTANTIATE_TEST_SUITE_P(
    Batches, Concatenated,
    ::testing::Values(BatchCase{"two alike", {4, 4}, {kChannels, 3, 3}},
                      BatchCase{"two unlike", {7, 2}, {kChannels, 2, 4}},
                      BatchCase{"three, one empty", {3, 0, 2}, {kChannels, 3}},
                      BatchCase{"four single values", {1, 1, 1, 1}, {kChannels}},
                      BatchCase{"a large mean", {4, 6}, {kChannels, 3, 3}, 1e5}));

TEST_P(Concatenated, IsNormalisedAsOneProcessWould) {
  const BatchCase& c = GetParam();
  const int ranks = static_cast<int>(c.batches.size());
  std::int64_t rows = 0;
  for (const std::int64_t batch : c.batches) rows += batch;
  std::vector<std::int64_t> shape = c.shape;
  shape.insert(shape.begin(), rows);
  torch::manual_seed(1);
  // Two rounds, because of the running statistics.
  std::vector<Tensor> whole, slopes;
  for (int round = 0; round < 2; ++round) {
    whole.push_back(torch::randn(shape, torch::kFloat64) * 3 + c.offset);
    slopes.push_back(torch::randn(shape, torch::kFloat64));
  }

  torch::nn::BatchNorm2d reference(kChannels);
  reference->to(torch::kFloat64);
  set_unlike(reference->weight, reference->bias);
  std::vector<Tensor> outputs, input_gradients;
  for (int round = 0; round < 2; ++round) {
    const Tensor input = whole[round].clone().requires_grad_();
    const Tensor output = torch::batch_norm(input, reference->weight, reference->bias,
                                            reference->running_mean, reference->running_var,
                                            /*training=*/true, 0.1, 1e-5, false);
    (output * slopes[round]).sum().backward();
    outputs.push_back(output.detach());
    input_gradients.push_back(input.grad());
  }
  // With a mean of 1e5, both results keep fewer of their 16 digits.
  const double tolerance = c.offset == 0 ? 1e-12 : 1e-8;

  std::vector<Tensor> weight_gradients(c.batches.size()), bias_gradients(c.batches.size());
  spawn_sessions(ranks, [&](Session& session) {
    const auto rank = static_cast<std::size_t>(session.rank());
    std::int64_t begin = 0;
    for (std::size_t before = 0; before < rank; ++before) begin += c.batches[before];
    SyncBatchNorm norm = make_norm(session);
    set_unlike(norm->weight, norm->bias);
    for (int round = 0; round < 2; ++round) {
      const auto mine = [&](const Tensor& of) { return of.narrow(0, begin, c.batches[rank]); };
      const Tensor input = mine(whole[round]).clone().requires_grad_();
      const Tensor output = norm->forward(input);
      (output * mine(slopes[round])).sum().backward();
      EXPECT_LT(distance(output.detach(), mine(outputs[round])), tolerance);
      EXPECT_LT(distance(input.grad(), mine(input_gradients[round])), tolerance);
    }
    EXPECT_LT(distance(norm->running_mean, reference->running_mean), tolerance);
    EXPECT_LT(distance(norm->running_var, reference->running_var), tolerance);
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 2);
    weight_gradients[rank] = norm->weight.grad();
    bias_gradients[rank] = norm->bias.grad();
  });
  Tensor weight_gradient = torch::zeros({kChannels}, torch::kFloat64);
  Tensor bias_gradient = torch::zeros({kChannels}, torch::kFloat64);
  for (int rank = 0; rank < ranks; ++rank) {
    weight_gradient += weight_gradients[rank];
    bias_gradient += bias_gradients[rank];
  }
  EXPECT_LT(distance(weight_gradient, reference->weight.grad()), tolerance);
  EXPECT_LT(distance(bias_gradient, reference->bias.grad()), tolerance);
}

// (f(x + h) - f(x - h)) / 2h for elements of either rank's input, where f is of all ranks' outputs.
TEST(SyncBatchNorm, HasTheGradientOfFiniteDifferences) {
  constexpr double kStep = 1e-5;
  torch::manual_seed(5);
  const Tensor whole = torch::randn({2, 3, kChannels, 2, 2}, torch::kFloat64);
  spawn_sessions(2, [&](Session& session) {
    const int rank = session.rank();
    SyncBatchNorm norm = make_norm(session);
    set_unlike(norm->weight, norm->bias);
    // Not linear: the gradient of a normalised sum alone would be zero.
    const auto loss_of = [&](const Tensor& input) { return norm->forward(input).pow(3).sum(); };
    const auto loss_of_all = [&](const Tensor& input) {
      double loss = loss_of(input).item<double>();
      const auto ticket = session.all_reduce(
          "loss", &loss, &loss, 1, collective::DataType::kFloat64, collective::ReduceOp::kSum);
      EXPECT_TRUE(ticket && session.wait(*ticket));
      return loss;
    };
    const Tensor input = whole[rank].clone().requires_grad_();
    loss_of(input).backward();
    const torch::NoGradGuard no_grad;
    for (const int moved_rank : {0, 1}) {
      for (const std::int64_t element : {0, 17, 42, 59}) {
        const auto moved = [&](double by) {
          Tensor x = whole[rank].clone();
          if (rank == moved_rank) x.view(-1)[element] += by;
          return loss_of_all(x);
        };
        const double difference = (moved(kStep) - moved(-kStep)) / (2 * kStep);
        if (rank != moved_rank) continue;
        EXPECT_NEAR(input.grad().view(-1)[element].item<double>(), difference, 1e-6);
      }
    }
  });
}

TEST(SyncBatchNorm, EqualsBatchNormInEvaluation) {
  spawn_sessions(2, [](Session& session) {
    SyncBatchNorm norm = make_norm(session);
    norm->forward(torch::randn({4, kChannels, 2, 2}, torch::kFloat64));
    norm->eval();
    // Rank 1 does not call forward: nothing is exchanged.
    if (session.rank() == 1) return;
    const Tensor input = torch::randn({2, kChannels, 2, 2}, torch::kFloat64);
    const Tensor expected = torch::batch_norm(input, norm->weight, norm->bias, norm->running_mean,
                                              norm->running_var, false, 0.1, 1e-5, false);
    EXPECT_LT(distance(norm->forward(input), expected), 1e-14);
  });
}

TEST(SyncBatchNorm, HasAStateWithTheNamesOfBatchNorm) {
  spawn_sessions(1, [](Session& session) {
    const auto names = [](const torch::nn::Module& module) {
      std::vector<std::string> keys = module.named_parameters().keys();
      for (const std::string& key : module.named_buffers().keys()) keys.push_back(key);
      return keys;
    };
    EXPECT_EQ(names(*make_norm(session)), names(*torch::nn::BatchNorm2d(kChannels)));
    const SyncBatchNormOptions bare{
        .features = kChannels, .affine = false, .track_running_stats = false};
    EXPECT_TRUE(names(*make_norm(session, bare)).empty());
  });
}

TEST(SyncBatchNorm, WorksWithoutParametersAndStatistics) {
  torch::manual_seed(2);
  const Tensor whole = torch::randn({2, 3, kChannels}, torch::kFloat64);
  const Tensor expected =
      torch::batch_norm(whole.flatten(0, 1), {}, {}, {}, {}, true, 0, 1e-5, false);
  spawn_sessions(2, [&](Session& session) {
    SyncBatchNorm norm =
        make_norm(session, {.features = kChannels, .affine = false, .track_running_stats = false});
    const Tensor input = whole[session.rank()].clone().requires_grad_();
    const Tensor output = norm->forward(input);
    EXPECT_LT(distance(output, expected.narrow(0, 3 * session.rank(), 3)), 1e-12);
    output.pow(2).sum().backward();
    EXPECT_TRUE(input.grad().defined());
  });
}

TEST(SyncBatchNorm, WithoutMomentumRunningStatisticsAreAPlainAverage) {
  spawn_sessions(2, [](Session& session) {
    SyncBatchNorm norm = make_norm(session, {.features = kChannels, .momentum = {}});
    for (const double value : {1.0, 2.0, 6.0}) {
      // The inputs of the two ranks are `value` and `value + 2`.
      const Tensor input = torch::full({2, kChannels}, value + 2 * session.rank(), torch::kFloat64);
      norm->forward(input);
    }
    EXPECT_LT(distance(norm->running_mean, torch::full({kChannels}, 4.0, torch::kFloat64)), 1e-12);
  });
}

TEST(SyncBatchNorm, ThrowsAnErrorThatNamesALostRank) {
  spawn_sessions(2, [](Session& session) {
    SyncBatchNorm norm = make_norm(session);
    const Tensor input = torch::randn({4, kChannels}, torch::kFloat64).requires_grad_();
    const Tensor output = norm->forward(input);
    if (session.rank() == 1) return;
    try {
      output.pow(2).sum().backward();
      ADD_FAILURE() << "the backward pass succeeded without the other rank";
    } catch (const CollectiveFailure& failure) {
      EXPECT_EQ(failure.error().rank, 1) << failure.what();
    }
  });
}

TEST(SyncBatchNorm, RejectsInputsWithOtherChannelsOrWithOneValue) {
  spawn_sessions(2, [](Session& session) {
    SyncBatchNorm norm = make_norm(session);
    EXPECT_THROW(norm->forward(torch::zeros({2, kChannels + 1}, torch::kFloat64)), c10::Error);
    EXPECT_THROW(norm->forward(torch::zeros({kChannels}, torch::kFloat64)), c10::Error);
    // One value per channel on both ranks together.
    EXPECT_THROW(
        norm->forward(torch::zeros({session.rank() == 0 ? 1 : 0, kChannels}, torch::kFloat64)),
        c10::Error);
  });
}

}  // namespace
}  // namespace muster::training
