#include "muster/training/distributed_optimizer.h"

#include <atomic>
#include <barrier>
#include <cmath>
#include <string>
#include <vector>

#include "test_world.h"

namespace muster::training {
namespace {

using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Session;
using collective::Status;
using torch::Tensor;
using torch::indexing::Slice;

constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kOutputs = 3;
constexpr std::int64_t kRows = 4;  // of each rank's batch
constexpr int kSteps = 8;

// Two branches, one of which a batch can leave out.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    hidden = register_module("hidden", torch::nn::Linear(kInputs, 8));
    branch = register_module("branch", torch::nn::Linear(kInputs, 8));
    unused = register_module("unused", torch::nn::Linear(2, 2));
    out = register_module("out", torch::nn::Linear(8, kOutputs));
    to(torch::kFloat64);
  }

  Tensor forward(const Tensor& x, bool with_branch) {
    Tensor h = torch::tanh(hidden(x));
    if (with_branch) h = h + torch::tanh(branch(x));
    return out(h);
  }

  torch::nn::Linear hidden{nullptr}, branch{nullptr}, unused{nullptr}, out{nullptr};
};
TORCH_MODULE(Net);

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<Tensor> parameters)>;

std::unique_ptr<torch::optim::Optimizer> momentum(std::vector<Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(
      std::move(parameters),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
}

std::unique_ptr<torch::optim::Optimizer> adam(std::vector<Tensor> parameters) {
  return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                              torch::optim::AdamOptions(0.01).weight_decay(0.01));
}

std::unique_ptr<torch::optim::Optimizer> plain(std::vector<Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.1));
}

// The initial values and the data of one process. Each rank uses its rows.
struct Task {
  explicit Task(int ranks) {
    torch::manual_seed(7);
    for (const Tensor& parameter : Net()->parameters()) start.push_back(parameter.detach().clone());
    inputs = torch::randn({kSteps, ranks * kRows, kInputs}, torch::kFloat64);
    targets = torch::randn({kSteps, ranks * kRows, kOutputs}, torch::kFloat64);
  }

  Net net() const {
    Net made;
    const torch::NoGradGuard no_grad;
    const auto parameters = made->parameters();
    for (std::size_t i = 0; i < start.size(); ++i) parameters[i].detach().copy_(start[i]);
    return made;
  }

  Tensor loss(Net& net, int step, Slice rows, bool with_branch = true) const {
    return torch::mse_loss(net(inputs[step].index({rows}), with_branch),
                           targets[step].index({rows}));
  }

  static Slice rows_of(int rank) { return Slice(rank * kRows, (rank + 1) * kRows); }

  std::vector<Tensor> start;
  Tensor inputs, targets;
};

std::vector<Tensor> alone(const Task& task, const MakeOptimizer& make) {
  Net net = task.net();
  const auto optimizer = make(net->parameters());
  for (int step = 0; step < kSteps; ++step) {
    for (Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
    task.loss(net, step, Slice()).backward();
    optimizer->step();
  }
  return net->parameters();
}

double furthest(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, distance(a[i], b[i]));
  return most;
}

std::unique_ptr<DistributedOptimizer> over(Session& session, const Net& net,
                                           torch::optim::Optimizer& inner,
                                           const OptimizerSettings& settings = {}) {
  auto optimizer = DistributedOptimizer::over(session, *net, inner, settings);
  EXPECT_TRUE(optimizer) << optimizer.error().to_string();
  return *std::move(optimizer);
}

void expect_done(const Status& status) {
  EXPECT_TRUE(status) << status.error().to_string();
}

struct BucketCase {
  const char* name;
  MakeOptimizer make;
  std::uint64_t bucket_bytes;
  std::size_t buckets;
};

class Equality : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Equality, ::testing::Values(1, 2, 3, 4));

TEST_P(Equality, WithTrainingOnTheConcatenatedBatch) {
  const int ranks = GetParam();
  const Task task(ranks);
  for (const BucketCase& c :
       {BucketCase{"one bucket", momentum, 1 << 20, 1}, BucketCase{"adam", adam, 1 << 20, 1},
        BucketCase{"many buckets", momentum, 200, 6}, BucketCase{"a bucket each", adam, 1, 8}}) {
    SCOPED_TRACE(c.name);
    const std::vector<Tensor> expected = alone(task, c.make);
    spawn_sessions(ranks, [&](Session& session) {
      Net net = task.net();
      const auto inner = c.make(net->parameters());
      const auto optimizer = over(session, net, *inner, {.bucket_bytes = c.bucket_bytes});
      if (ranks > 1) {
        EXPECT_EQ(optimizer->buckets(), c.buckets);
      }
      for (int step = 0; step < kSteps; ++step) {
        optimizer->zero_grad();
        task.loss(net, step, Task::rows_of(session.rank())).backward();
        expect_done(optimizer->step());
      }
      EXPECT_LT(furthest(net->parameters(), expected), 1e-12);
      EXPECT_GT(furthest(net->parameters(), task.start), 0.01);
      // No rank had a gradient for it, so even the weight decay has not changed it.
      EXPECT_EQ(distance(net->unused->weight, task.start[4]), 0);
    });
  }
}

TEST_P(Equality, WithAccumulatedPasses) {
  const int ranks = GetParam();
  const Task task(ranks);
  constexpr int kPasses = 3;
  // Steps of 3, 3 and 2 passes: the last step follows fewer passes.
  Net expected = task.net();
  const auto one = momentum(expected->parameters());
  for (int step = 0; step < kSteps; ++step) {
    (task.loss(expected, step, Slice()) / kPasses).backward();
    if (step % kPasses != kPasses - 1 && step != kSteps - 1) continue;
    one->step();
    for (Tensor& parameter : expected->parameters()) parameter.mutable_grad().reset();
  }
  spawn_sessions(ranks, [&](Session& session) {
    Net net = task.net();
    const auto inner = momentum(net->parameters());
    const auto optimizer =
        over(session, net, *inner, {.passes_per_step = kPasses, .bucket_bytes = 200});
    for (int step = 0; step < kSteps; ++step) {
      (task.loss(net, step, Task::rows_of(session.rank())) / kPasses).backward();
      if (step % kPasses != kPasses - 1 && step != kSteps - 1) continue;
      expect_done(optimizer->step());
      optimizer->zero_grad();
    }
    EXPECT_LT(furthest(net->parameters(), expected->parameters()), 1e-12);
  });
}

// Some ranks leave a branch out in some steps; in one step all ranks do.
TEST_P(Equality, IfRanksHaveNoGradientForSomeParameters) {
  const int ranks = GetParam();
  const Task task(ranks);
  const auto takes_branch = [](int rank, int step) { return step != 3 && (rank + step) % 2 == 0; };
  Net expected = task.net();
  const auto one = momentum(expected->parameters());
  for (int step = 0; step < kSteps; ++step) {
    for (Tensor& parameter : expected->parameters()) parameter.mutable_grad().reset();
    Tensor total = torch::zeros({}, torch::kFloat64);
    for (int rank = 0; rank < ranks; ++rank) {
      total = total + task.loss(expected, step, Task::rows_of(rank), takes_branch(rank, step));
    }
    (total / ranks).backward();
    one->step();
  }
  spawn_sessions(ranks, [&](Session& session) {
    Net net = task.net();
    const auto inner = momentum(net->parameters());
    const auto optimizer = over(session, net, *inner, {.bucket_bytes = 200});
    for (int step = 0; step < kSteps; ++step) {
      optimizer->zero_grad();
      task.loss(net, step, Task::rows_of(session.rank()), takes_branch(session.rank(), step))
          .backward();
      expect_done(optimizer->synchronize());
      EXPECT_EQ(net->branch->weight.grad().defined(),
                step != 3 && (ranks > 1 || takes_branch(0, step)));
      EXPECT_FALSE(net->unused->weight.grad().defined());
      expect_done(optimizer->step());
    }
    EXPECT_LT(furthest(net->parameters(), expected->parameters()), 1e-12);
  });
}

// Each rank rounds its gradient with an error of up to u * |g|, and the average is rounded once
// more.
TEST(Compressed, GradientsAreWithinTheRoundingOfTheirType) {
  struct Type {
    Compression compression;
    double unit;
    double smallest;
  };
  for (const Type& type : {Type{Compression::kFloat16, std::ldexp(1.0, -11), std::ldexp(1.0, -25)},
                           Type{Compression::kBFloat16, std::ldexp(1.0, -8), 0}}) {
    for (const int ranks : {2, 3}) {
      const Task task(ranks);
      std::vector<std::vector<Tensor>> own;
      for (int rank = 0; rank < ranks; ++rank) {
        Net net = task.net();
        task.loss(net, 0, Task::rows_of(rank)).backward();
        own.emplace_back();
        for (const Tensor& parameter : net->parameters()) own.back().push_back(parameter.grad());
      }
      spawn_sessions(ranks, [&](Session& session) {
        Net net = task.net();
        const auto inner = plain(net->parameters());
        const auto optimizer = over(session, net, *inner, {.compression = type.compression});
        task.loss(net, 0, Task::rows_of(session.rank())).backward();
        expect_done(optimizer->synchronize());
        const auto parameters = net->parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          if (!own[0][i].defined()) continue;
          Tensor mean = torch::zeros_like(own[0][i]);
          Tensor size = torch::zeros_like(mean);
          for (const auto& gradients : own) {
            mean += gradients[i] / ranks;
            size += gradients[i].abs() / ranks;
          }
          const Tensor bound = size * (2.1 * type.unit) + 2 * type.smallest;
          const Tensor error = (parameters[i].grad() - mean).abs();
          EXPECT_TRUE((error <= bound).all().item<bool>()) << i;
          EXPECT_GT(error.max().item<double>(), 0) << "nothing was rounded";
        }
        expect_done(optimizer->step());
      });
    }
  }
}

TEST(DistributedOptimizer, SumsIfSetToSum) {
  const Task task(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    const auto optimizer = over(session, net, *inner, {.op = ReduceOp::kSum});
    net->out(torch::ones({1, 8}, torch::kFloat64)).sum().backward();
    expect_done(optimizer->synchronize());
    EXPECT_TRUE(net->out->weight.grad().eq(2).all().item<bool>());
  });
}

TEST(DistributedOptimizer, AllowsClippingOfReducedGradients) {
  const Task task(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    const auto optimizer = over(session, net, *inner);
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      task.loss(net, step, Task::rows_of(session.rank())).backward();
      expect_done(optimizer->synchronize());
      std::vector<Tensor> before;
      for (const Tensor& parameter : net->parameters())
        before.push_back(parameter.detach().clone());
      for (Tensor& parameter : net->parameters()) {
        if (parameter.grad().defined()) parameter.mutable_grad().mul_(0);
      }
      expect_done(optimizer->step());
      EXPECT_EQ(furthest(net->parameters(), before), 0) << "the gradients were reduced again";
    }
  });
}

// zero_grad() of the model or of the inner optimizer fills gradients with zeros, or removes them.
TEST(DistributedOptimizer, AcceptsGradientsThatWereZeroedElsewhere) {
  const Task task(2);
  const std::vector<Tensor> expected = alone(task, adam);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = adam(net->parameters());
    const auto optimizer = over(session, net, *inner);
    for (int step = 0; step < kSteps; ++step) {
      if (step % 3 == 0) inner->zero_grad();
      if (step % 3 == 1) net->zero_grad(/*set_to_none=*/true);
      if (step % 3 == 2) net->zero_grad();
      task.loss(net, step, Task::rows_of(session.rank())).backward();
      expect_done(optimizer->step());
    }
    EXPECT_LT(furthest(net->parameters(), expected), 1e-12);
  });
}

TEST(DistributedOptimizer, StoresGradientsInBucketsInTheOrderInWhichTheyBecomeReady) {
  const Task task(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    const auto optimizer = over(session, net, *inner);
    for (int step = 0; step < 2; ++step) {
      optimizer->zero_grad();
      task.loss(net, step, Task::rows_of(session.rank())).backward();
      expect_done(optimizer->step());
    }
    const auto at = [](const torch::nn::Linear& layer) {
      return static_cast<const char*>(layer->weight.grad().data_ptr());
    };
    const char* const out = at(net->out);
    EXPECT_LT(out, at(net->branch));
    EXPECT_LT(out, at(net->hidden));
    EXPECT_LT(at(net->hidden) - out, 4096) << "they do not share a bucket";
  });
}

TEST(DistributedOptimizer, KeepsTheLayoutOfParameters) {
  spawn_sessions(2, [&](Session& session) {
    torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3));
    net->to(torch::kFloat64);
    auto conv = net->ptr<torch::nn::Conv2dImpl>(0);
    conv->weight.set_data(torch::arange(108, torch::kFloat64)
                              .view({4, 3, 3, 3})
                              .contiguous(torch::MemoryFormat::ChannelsLast));
    torch::optim::SGD inner(net->parameters(), 0.1);
    const auto optimizer = DistributedOptimizer::over(session, *net, inner);
    ASSERT_TRUE(optimizer);
    const Tensor image =
        torch::arange(75, torch::kFloat64).view({1, 3, 5, 5}) * (session.rank() + 1);
    // Uses autograd::grad(), which calls no hook: gradients of backward() may already be reduced.
    const Tensor own = torch::autograd::grad({net->forward(image).sum()}, {conv->weight})[0];
    net->forward(image).sum().backward();
    expect_done((*optimizer)->synchronize());
    EXPECT_EQ(conv->weight.grad().strides(), conv->weight.strides());
    EXPECT_LT(distance(conv->weight.grad(), own * 1.5 / (session.rank() + 1)), 1e-9);
  });
}

TEST(DistributedOptimizer, NamesTheParameterThatGotTooManyPasses) {
  const Task task(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    const auto optimizer = over(session, net, *inner);
    for (int pass = 0; pass < 2; ++pass) {
      net->out(torch::ones({1, 8}, torch::kFloat64)).sum().backward();
    }
    const Status stepped = optimizer->step();
    ASSERT_FALSE(stepped);
    EXPECT_EQ(stepped.error().code, ErrorCode::kBadArgument);
    EXPECT_TRUE(stepped.error().message.starts_with("'out.")) << stepped.error().message;
    EXPECT_NE(
        stepped.error().message.find("2 passes since the last step, but passes_per_step is 1"),
        std::string::npos);
    EXPECT_EQ(distance(net->out->weight, task.start[6]), 0);
  });
}

TEST(DistributedOptimizer, RefusesParametersThatAreTrainedOnlyLater) {
  const Task task(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    net->branch->weight.set_requires_grad(false);
    const auto inner = plain(net->parameters());
    {
      const auto optimizer = over(session, net, *inner, {.name = "before"});
      task.loss(net, 0, Task::rows_of(session.rank())).backward();
      expect_done(optimizer->step());
      net->branch->weight.set_requires_grad(true);
      optimizer->zero_grad();
      task.loss(net, 1, Task::rows_of(session.rank())).backward();
      const Status stepped = optimizer->step();
      ASSERT_FALSE(stepped);
      EXPECT_EQ(stepped.error().code, ErrorCode::kBadArgument);
      EXPECT_EQ(stepped.error().message,
                "'branch.weight' requires a gradient, but was not trained when this distributed "
                "optimizer was created");
      EXPECT_EQ(distance(net->branch->weight, task.start[2]), 0);
      optimizer->zero_grad();
      EXPECT_FALSE(net->branch->weight.grad().defined());
    }
    const auto optimizer = over(session, net, *inner, {.name = "after"});
    task.loss(net, 1, Task::rows_of(session.rank())).backward();
    expect_done(optimizer->step());
    inner->add_param_group(torch::optim::OptimizerParamGroup({torch::ones({2}).requires_grad_()}));
    const Status synchronized = optimizer->synchronize();
    ASSERT_FALSE(synchronized);
    EXPECT_EQ(
        synchronized.error().message,
        "parameter 0 of the optimizer's group 1 requires a gradient, but was not trained when "
        "this distributed optimizer was created");
  });
}

TEST(DistributedOptimizer, RejectsInvalidSettingsWithAllFaults) {
  spawn_sessions(1, [&](Session& session) {
    const Net net;
    torch::optim::SGD inner(net->parameters(), 0.1);
    const auto optimizer = DistributedOptimizer::over(
        session, *net, inner,
        {.op = ReduceOp::kMax, .passes_per_step = 0, .bucket_bytes = 0, .name = ""});
    ASSERT_FALSE(optimizer);
    EXPECT_EQ(optimizer.error().message,
              "gradients can be averaged or summed, but op is max; passes_per_step is 0, not 1 or "
              "more; bucket_bytes is 0; name is empty");
  });
}

TEST(DistributedOptimizer, RejectsParametersThatTheModelDoesNotHave) {
  spawn_sessions(1, [&](Session& session) {
    const Net net;
    std::vector<Tensor> parameters = net->parameters();
    parameters.insert(parameters.begin() + 1, torch::zeros({2}).requires_grad_());
    torch::optim::SGD inner(parameters, 0.1);
    const auto optimizer = DistributedOptimizer::over(session, *net, inner);
    ASSERT_FALSE(optimizer);
    EXPECT_EQ(optimizer.error().message,
              "parameter 1 of the optimizer's group 0 is not a parameter of the model");
  });
}

TEST(DistributedOptimizer, RejectsDifferentRanksOnAllRanks) {
  spawn_sessions(3, [&](Session& session) {
    torch::nn::Sequential net(torch::nn::Linear(4, session.rank() == 2 ? 3 : 2));
    torch::optim::SGD inner(net->parameters(), 0.1);
    const auto optimizer = DistributedOptimizer::over(session, *net, inner);
    ASSERT_FALSE(optimizer);
    EXPECT_EQ(optimizer.error().code, ErrorCode::kMismatch);
    EXPECT_EQ(
        optimizer.error().message,
        "the ranks have different parameters or settings: rank 0 has '0.weight: float32 [2, 4] "
        "strides 4 1' where rank 2 has '0.weight: float32 [3, 4] strides 4 1'");
    EXPECT_EQ(optimizer.error().rank, 2);
  });
}

TEST(DistributedOptimizer, NamesALostRankAndTheParameters) {
  const Task task(3);
  std::atomic<int> failed_ranks = 0;
  spawn_sessions(3, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    const auto optimizer = over(session, net, *inner, {.bucket_bytes = 200});
    optimizer->zero_grad();
    task.loss(net, 0, Task::rows_of(session.rank())).backward();
    expect_done(optimizer->step());
    if (session.rank() == 1) return;
    const Tensor before = net->out->weight.detach().clone();
    optimizer->zero_grad();
    task.loss(net, 1, Task::rows_of(session.rank())).backward();
    const Status stepped = optimizer->step();
    ASSERT_FALSE(stepped);
    EXPECT_EQ(stepped.error().rank, 1) << stepped.error().to_string();
    EXPECT_NE(stepped.error().message.find("the gradients of 'out."), std::string::npos)
        << stepped.error().message;
    EXPECT_EQ(distance(net->out->weight, before), 0);
    EXPECT_FALSE(optimizer->step());
    ++failed_ranks;
  });
  EXPECT_EQ(failed_ranks, 2);
}

// The optimizer is destroyed with pending gradients: their memory stays until the session ends.
TEST(DistributedOptimizer, MayBeDestroyedInTheMiddleOfAStep) {
  const Task task(2);
  std::barrier together(2);
  spawn_sessions(2, [&](Session& session) {
    Net net = task.net();
    const auto inner = plain(net->parameters());
    auto optimizer = over(session, net, *inner);
    if (session.rank() == 0) task.loss(net, 0, Task::rows_of(0)).backward();
    optimizer.reset();
    EXPECT_FALSE(net->out->weight.grad().defined());
    together.arrive_and_wait();
    // Its hooks were removed with it.
    task.loss(net, 0, Task::rows_of(0)).backward();
    EXPECT_TRUE(net->out->weight.grad().defined());
  });
}

TEST(DistributedOptimizer, ReturnsTheExceptionOfTheInnerOptimizerAsAnError) {
  spawn_sessions(1, [&](Session& session) {
    const Net net;
    torch::optim::LBFGS inner(net->parameters());
    const auto optimizer = over(session, net, inner);
    const Status stepped = optimizer->step();
    ASSERT_FALSE(stepped);
    EXPECT_NE(stepped.error().message.find("closure"), std::string::npos);
  });
}

}  // namespace
}  // namespace muster::training
