#include "muster/training/sharded_optimizer.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "shard_bucket.h"
#include "test_folder.h"
#include "test_world.h"

namespace muster::training {
namespace {

using collective::ErrorCode;
using collective::Session;
using collective::Status;
using torch::Tensor;

constexpr int kShardedSteps = 5;

// Layers of odd lengths, so that pieces end within parameters; a branch that some batches leave
// out; a parameter that is never used.
struct OddNetImpl : torch::nn::Module {
  OddNetImpl() {
    first = register_module("first", torch::nn::Linear(17, 37));
    branch = register_module("branch", torch::nn::Linear(17, 37));
    last = register_module("last", torch::nn::Linear(37, 5));
    idle = register_parameter("idle", torch::ones({3}));
  }

  Tensor forward(const Tensor& x, bool with_branch) {
    Tensor hidden = torch::tanh(first(x));
    if (with_branch) hidden = hidden + torch::tanh(branch(x));
    return last(hidden);
  }

  torch::nn::Linear first{nullptr}, branch{nullptr}, last{nullptr};
  Tensor idle;
};
TORCH_MODULE(OddNet);

using MakeInner = std::unique_ptr<torch::optim::Optimizer> (*)(const OddNet&);

std::unique_ptr<torch::optim::Optimizer> inner_sgd(const OddNet& net) {
  return std::make_unique<torch::optim::SGD>(
      net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
}

std::unique_ptr<torch::optim::Optimizer> inner_adam(const OddNet& net) {
  return std::make_unique<torch::optim::Adam>(
      net->parameters(), torch::optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(true));
}

std::unique_ptr<torch::optim::Optimizer> inner_adamw(const OddNet& net) {
  return std::make_unique<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(0.01));
}

std::unique_ptr<torch::optim::Optimizer> inner_rmsprop(const OddNet& net) {
  return std::make_unique<torch::optim::RMSprop>(
      net->parameters(), torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true));
}

// Equal on all ranks, which are threads and must not share torch's generator.
OddNet odd_net(int seed = 1) {
  OddNet net;
  const torch::NoGradGuard no_grad;
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(static_cast<unsigned>(seed));
  for (Tensor& parameter : net->parameters()) parameter.normal_(0, 0.3, generator);
  return net;
}

template <typename Wrapped>
void train_steps(OddNet& net, Wrapped& optimizer, int rank, int begin, int end, int passes = 1) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    for (int pass = 0; pass < passes; ++pass) {
      auto generator = torch::make_generator<torch::CPUGeneratorImpl>(
          static_cast<unsigned>(1000 * (step * passes + pass) + rank));
      const Tensor x = torch::randn({4, 17}, generator);
      net(x, step % 2 == 0 || rank == 0).pow(2).mean().backward();
    }
    const Status stepped = optimizer.step();
    ASSERT_TRUE(stepped) << stepped.error().to_string();
  }
}

std::unique_ptr<ShardedOptimizer> sharded(Session& session, OddNet& net,
                                          torch::optim::Optimizer& inner,
                                          const OptimizerSettings& settings, int stage) {
  auto optimizer = ShardedOptimizer::over(session, *net, inner, settings, stage);
  EXPECT_TRUE(optimizer) << optimizer.error().to_string();
  return *std::move(optimizer);
}

bool same_parameters(const OddNet& a, const OddNet& b) {
  const auto left = a->parameters();
  const auto right = b->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!left[i].equal(right[i])) return false;
  }
  return true;
}

class ShardedRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ShardedRanks, ::testing::Values(1, 2, 3));

TEST_P(ShardedRanks, TrainToTheSameBitsAsUnsharded) {
  spawn_sessions(GetParam(), [&](Session& session) {
    for (const MakeInner make : {inner_sgd, inner_adam, inner_adamw, inner_rmsprop}) {
      for (const int stage : {1, 2}) {
        for (const Compression compression : {Compression::kNone, Compression::kBFloat16}) {
          OddNet expected = odd_net();
          OddNet net = odd_net();
          const auto plain = make(expected);
          const auto inner = make(net);
          OptimizerSettings settings{.compression = compression, .bucket_bytes = 2048};
          const auto unsharded = DistributedOptimizer::over(session, *expected, *plain, settings);
          ASSERT_TRUE(unsharded);
          settings.name = "sharded";
          const auto optimizer = sharded(session, net, *inner, settings, stage);
          train_steps(expected, **unsharded, session.rank(), 0, kShardedSteps);
          train_steps(net, *optimizer, session.rank(), 0, kShardedSteps);
          EXPECT_TRUE(same_parameters(net, expected)) << stage;
          EXPECT_TRUE(net->idle.equal(torch::ones({3})) || session.size() == 1 ||
                      net->idle.equal(expected->idle));
        }
      }
    }
  });
}

TEST_P(ShardedRanks, AccumulateAndDivideTheState) {
  spawn_sessions(GetParam(), [&](Session& session) {
    OddNet expected = odd_net();
    OddNet net = odd_net();
    const auto plain = inner_adam(expected);
    const auto inner = inner_adam(net);
    const auto unsharded =
        DistributedOptimizer::over(session, *expected, *plain, {.passes_per_step = 3});
    ASSERT_TRUE(unsharded);
    const auto optimizer =
        sharded(session, net, *inner, {.passes_per_step = 3, .name = "sharded"}, 2);
    train_steps(expected, **unsharded, session.rank(), 0, 3, 3);
    train_steps(net, *optimizer, session.rank(), 0, 3, 3);
    EXPECT_TRUE(same_parameters(net, expected));
    for (const Tensor& parameter : net->parameters()) EXPECT_FALSE(parameter.grad().defined());
    const auto share = optimizer->elements() / static_cast<std::size_t>(session.size());
    EXPECT_LE(optimizer->own_elements(), share + 6 * 64);
  });
}

TEST(ShardedCheckpoint, ResumesOnAnyNumberOfRanks) {
  const TestFolder folder;
  for (const int ranks : {3, 2, 1, 2}) {
    // Each run continues the one before, and compares itself with an unsharded training.
    spawn_sessions(ranks, [&](Session& session) {
      OddNet net = odd_net(7 + session.rank());
      const auto inner = inner_adam(net);
      const auto optimizer =
          sharded(session, net, *inner, {.bucket_bytes = 2048, .name = "sharded"}, 1 + ranks % 2);
      const auto found = optimizer->resume(folder.path());
      ASSERT_TRUE(found) << found.error().to_string();
      const int begin = found->has_value() ? static_cast<int>((**found).step) : 0;
      if (begin == 0) {
        const torch::NoGradGuard no_grad;
        const OddNet start = odd_net();
        for (std::size_t i = 0; i < net->parameters().size(); ++i) {
          net->parameters()[i].copy_(start->parameters()[i]);
        }
      }
      EXPECT_EQ(begin == 0, ranks == 3);
      // Every rank computes the same gradients, so that the number of ranks does not matter.
      train_steps(net, *optimizer, 0, begin, begin + 2);
      const Status kept = optimizer->save(folder.path(), {.step = std::uint64_t(begin) + 2});
      ASSERT_TRUE(kept) << kept.error().to_string();

      OddNet expected = odd_net();
      const auto plain = inner_adam(expected);
      const auto unsharded = DistributedOptimizer::over(session, *expected, *plain);
      ASSERT_TRUE(unsharded);
      train_steps(expected, **unsharded, 0, 0, begin + 2);
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        EXPECT_LE(distance(net->parameters()[i], expected->parameters()[i]), 1e-6);
      }
    });
    std::size_t shards = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      shards += entry.is_directory() ? 1 : 0;
    }
    EXPECT_EQ(shards, static_cast<std::size_t>(ranks));
  }
}

TEST(ShardedCheckpoint, IsInAFolderOfItsOwnerOnly) {
  const TestFolder folder;
  const std::string made = folder.path() + "/made";
  spawn_sessions(2, [&](Session& session) {
    OddNet net = odd_net();
    const auto inner = inner_adam(net);
    const auto optimizer = sharded(session, net, *inner, {.name = "sharded"}, 2);
    ASSERT_TRUE(optimizer->save(made, {}));
  });
  EXPECT_EQ(std::filesystem::status(made).permissions(), std::filesystem::perms::owner_all);
}

TEST(ShardedCheckpoint, RemovesNoFilesButOlderShards) {
  const TestFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  std::ofstream(path("shard-000012.tar")) << "x";
  std::ofstream(path("shard-8-0-of-2")) << "x";
  std::filesystem::create_directory(path("shard-of-data"));
  std::filesystem::create_directories(path("shard-9-0-of-2/notes"));
  spawn_sessions(2, [&](Session& session) {
    OddNet net = odd_net();
    const auto inner = inner_adam(net);
    const auto optimizer = sharded(session, net, *inner, {.name = "sharded"}, 2);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(optimizer->save(folder.path(), {}));
  });
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    found.insert(entry.path().filename());
  }
  EXPECT_EQ(found, (std::set<std::string>{"checkpoint", "shard-000012.tar", "shard-2-0-of-2",
                                          "shard-2-1-of-2", "shard-8-0-of-2", "shard-9-0-of-2",
                                          "shard-of-data"}));
}

TEST(ShardedCheckpoint, RefusesDamagedAndForeignOnes) {
  const TestFolder folder;
  spawn_sessions(2, [&](Session& session) {
    OddNet net = odd_net();
    const auto inner = inner_adam(net);
    const auto optimizer = sharded(session, net, *inner, {.name = "sharded"}, 2);
    train_steps(net, *optimizer, session.rank(), 0, 1);
    ASSERT_TRUE(optimizer->save(folder.path(), {}));

    OddNet other = odd_net();
    const auto of_sgd = inner_sgd(other);
    const auto foreign = sharded(session, other, *of_sgd, {.name = "foreign"}, 2);
    auto found = foreign->resume(folder.path());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kMismatch);
    EXPECT_NE(found.error().message.find("SGD"), std::string::npos) << found.error().message;

    if (session.rank() == 0) {
      const std::string shard = folder.path() + "/shard-1-1-of-2/checkpoint";
      std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
    }
    ASSERT_TRUE(session.wait(*session.barrier("damaged")));
    found = optimizer->resume(folder.path());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kBadArgument);
  });
}

TEST(ShardedOptimizer, RefusesParametersThatAreTrainedOnlyLater) {
  spawn_sessions(2, [](Session& session) {
    OddNet net = odd_net();
    net->branch->weight.set_requires_grad(false);
    const auto inner = inner_sgd(net);
    {
      const auto optimizer = sharded(session, net, *inner, {.name = "before"}, 2);
      train_steps(net, *optimizer, session.rank(), 0, 2);
      net->branch->weight.set_requires_grad(true);
      net(torch::ones({1, 17}), true).sum().backward();
      optimizer->zero_grad();
      EXPECT_FALSE(net->branch->weight.grad().defined());
      const Status stepped = optimizer->step();
      ASSERT_FALSE(stepped);
      EXPECT_EQ(stepped.error().code, ErrorCode::kBadArgument);
      EXPECT_EQ(stepped.error().message,
                "'branch.weight' requires a gradient, but was not trained when this distributed "
                "optimizer was created");
    }
    torch::optim::SGD other(net->parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = sharded(session, net, other, {.name = "after"}, 2);
    train_steps(net, *optimizer, session.rank(), 0, 2);
    other.add_param_group(torch::optim::OptimizerParamGroup({torch::ones({2}).requires_grad_()}));
    const Status stepped = optimizer->step();
    ASSERT_FALSE(stepped);
    EXPECT_EQ(
        stepped.error().message,
        "parameter 0 of the optimizer's group 1 requires a gradient, but was not trained when "
        "this distributed optimizer was created");
  });
}

TEST(ShardedArguments, AreChecked) {
  spawn_sessions(2, [&](Session& session) {
    OddNet net = odd_net();
    const auto inner = inner_adam(net);
    auto made = ShardedOptimizer::over(session, *net, *inner, {.name = "a"}, 3);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "stage is 3, not 1 or 2");
    torch::optim::LBFGS whole(net->parameters(), torch::optim::LBFGSOptions(1));
    made = ShardedOptimizer::over(session, *net, whole, {.name = "b"});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find("LBFGS"), std::string::npos);
    made = ShardedOptimizer::over(session, *net, *inner, {.passes_per_step = 0, .name = ""});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "passes_per_step is 0, not 1 or more; name is empty");
    made = ShardedOptimizer::over(session, *net, *inner, {.name = "c"}, 1 + session.rank());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kMismatch);
  });
}

TEST(ShardLayouts, GiveEachElementToOneRank) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{}, {0}, {1}, {63, 64, 65}, {1000, 3, 17}}) {
      const ShardLayout layout = layout_of(lengths, ranks);
      std::uint64_t total = 0;
      for (const std::uint64_t count : layout.counts) {
        EXPECT_EQ(count % 64, 0U);
        total += count;
      }
      std::uint64_t needed = 0;
      for (const std::int64_t length : lengths) {
        needed += (static_cast<std::uint64_t>(length) + 63) / 64 * 64;
      }
      EXPECT_EQ(total, needed);
      EXPECT_EQ(layout.counts.size(), static_cast<std::size_t>(ranks));
    }
  }
}

}  // namespace
}  // namespace muster::training
