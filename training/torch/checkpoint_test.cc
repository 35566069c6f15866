#include "muster/training/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "checkpoint_file.h"
#include "muster/training/broadcast.h"
#include "muster/training/distributed_optimizer.h"
#include "test_folder.h"
#include "test_world.h"

namespace muster::training {
namespace {

using collective::ErrorCode;
using collective::Session;
using collective::Status;
using torch::Tensor;

// Has buffers, one of them an integer, and a parameter that is never trained.
struct ModelImpl : torch::nn::Module {
  explicit ModelImpl(std::int64_t outputs = 3) {
    first = register_module("first", torch::nn::Linear(4, 5));
    norm = register_module("norm", torch::nn::BatchNorm1d(5));
    last = register_module("last", torch::nn::Linear(5, outputs));
    idle = register_parameter("idle", torch::zeros({2}));
    to(torch::kFloat64);
  }

  Tensor forward(const Tensor& x) { return last(torch::tanh(norm(first(x)))); }

  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Tensor idle;
};
TORCH_MODULE(Model);

using MakeOptimizerOfModel = std::unique_ptr<torch::optim::Optimizer> (*)(const Model&, double);

std::unique_ptr<torch::optim::Optimizer> plain_momentum(const Model& model, double rate) {
  return std::make_unique<torch::optim::SGD>(model->parameters(),
                                             torch::optim::SGDOptions(rate).momentum(0.9));
}

std::unique_ptr<torch::optim::Optimizer> amsgrad(const Model& model, double rate) {
  return std::make_unique<torch::optim::Adam>(model->parameters(),
                                              torch::optim::AdamOptions(rate).amsgrad(true));
}

void train(Model& model, torch::optim::Optimizer& optimizer, int steps, std::uint64_t seed) {
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(seed);
  for (int i = 0; i < steps; ++i) {
    for (Tensor& parameter : model->parameters()) parameter.mutable_grad().reset();
    const Tensor x = torch::randn({8, 4}, generator, torch::kFloat64);
    model(x).pow(2).mean().backward();
    optimizer.step();
  }
}

std::vector<Tensor> values(const Model& model) {
  std::vector<Tensor> all;
  for (const Tensor& tensor : model->parameters()) all.push_back(tensor.detach().clone());
  for (const Tensor& tensor : model->buffers()) all.push_back(tensor.detach().clone());
  return all;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = a[i].equal(b[i]);
  return same;
}

class State : public ::testing::TestWithParam<MakeOptimizerOfModel> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, State, ::testing::Values(plain_momentum, amsgrad));

// The ranks begin with different states, receive rank 1's state, and stay equal from then on, since
// the moments, the step counts and the learning rate are included.
TEST_P(State, IsBroadcastWithTheOptimizersState) {
  std::vector<std::vector<Tensor>> ends(3);
  std::vector<Tensor> expected;
  spawn_sessions(3, [&](Session& session) {
    const auto rank = static_cast<std::size_t>(session.rank());
    Model model;
    const auto optimizer = GetParam()(model, 0.01 * (1 + session.rank()));
    train(model, *optimizer, session.rank(), 17 + rank);  // rank 0's optimizer has no state
    for (const Status& sent : {broadcast_parameters(session, *model, 1),
                               broadcast_optimizer_state(session, *optimizer, 1)}) {
      ASSERT_TRUE(sent) << sent.error().to_string();
    }
    EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), 0.02);
    train(model, *optimizer, 4, 99);
    ends[rank] = values(model);
  });
  EXPECT_TRUE(equal(ends[0], ends[1]));
  EXPECT_TRUE(equal(ends[2], ends[1]));
}

TEST_P(State, OfACheckpointLeadsToTheSameBits) {
  const TestFolder folder;
  std::vector<Tensor> expected;
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const auto optimizer = GetParam()(model, 0.05);
    ASSERT_TRUE(broadcast_parameters(session, *model));
    train(model, *optimizer, 3, 5);
    const Status kept = save(session, folder.path() + "/run", *model, *optimizer,
                             {.epoch = 2, .step = 3, .samples = 48});
    ASSERT_TRUE(kept) << kept.error().to_string();
    train(model, *optimizer, 3, 6);
    if (session.rank() == 0) expected = values(model);
  });
  spawn_sessions(3, [&](Session& session) {
    Model model;
    const auto optimizer = GetParam()(model, 7.0);
    train(model, *optimizer, session.rank(), 1);
    const auto found = resume(session, folder.path() + "/run", *model, *optimizer);
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(*found, (Progress{.epoch = 2, .step = 3, .samples = 48}));
    train(model, *optimizer, 3, 6);
    EXPECT_TRUE(equal(values(model), expected));
  });
}

TEST(Broadcast, RejectsDifferentModelsOnAllRanks) {
  spawn_sessions(2, [](Session& session) {
    Model model(3 + session.rank());
    const std::vector<Tensor> before = values(model);
    const Status sent = broadcast_parameters(session, *model);
    ASSERT_FALSE(sent);
    EXPECT_EQ(
        sent.error().message,
        "the ranks have different models: rank 0 has 'last.weight: float64 [3, 5]' where rank 1 "
        "has 'last.weight: float64 [4, 5]'");
    EXPECT_TRUE(equal(values(model), before));
  });
}

TEST(Broadcast, RejectsDifferentOptimizers) {
  spawn_sessions(2, [](Session& session) {
    Model model;
    const auto optimizer = session.rank() == 0 ? plain_momentum(model, 0.1) : amsgrad(model, 0.1);
    const Status sent = broadcast_optimizer_state(session, *optimizer);
    ASSERT_FALSE(sent);
    EXPECT_EQ(
        sent.error().message,
        "the ranks have different optimizers: rank 0 has 'SGD with 7 parameters' where rank 1 "
        "has 'Adam with 7 parameters'");
  });
}

TEST(Broadcast, KeepsTheLayoutOfEveryRank) {
  spawn_sessions(2, [](Session& session) {
    torch::nn::Conv2d conv(2, 3, 3);
    if (session.rank() == 1)
      conv->weight.set_data(conv->weight.to(torch::MemoryFormat::ChannelsLast));
    {
      const torch::NoGradGuard no_grad;
      conv->weight.copy_(torch::arange(54).view({3, 2, 3, 3}) * (session.rank() + 1));
    }
    ASSERT_TRUE(broadcast_parameters(session, *conv));
    EXPECT_TRUE(conv->weight.detach().equal(torch::arange(54, torch::kFloat32).view({3, 2, 3, 3})));
    EXPECT_EQ(conv->weight.is_contiguous(), session.rank() == 0);
  });
}

TEST(Broadcast, AcceptsTensorsThatOverlap) {
  spawn_sessions(2, [](Session& session) {
    torch::nn::Module model;
    const Tensor full = torch::arange(10) * (session.rank() + 1);
    model.register_buffer("end", full.slice(0, 5));
    model.register_buffer("full", full);
    model.register_buffer("middle", full.slice(0, 3, 8));
    model.register_buffer("start", full.slice(0, 0, 5));
    const Status sent = broadcast_parameters(session, model);
    ASSERT_TRUE(sent) << sent.error().to_string();
    EXPECT_TRUE(full.equal(torch::arange(10)));
  });
}

TEST(Checkpoint, ThatDoesNotExistChangesNothing) {
  const TestFolder folder;
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const std::vector<Tensor> before = values(model);
    const auto optimizer = plain_momentum(model, 0.1);
    const auto found = resume(session, folder.path(), *model, *optimizer);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->has_value());
    EXPECT_TRUE(equal(values(model), before));
  });
}

TEST(Checkpoint, OfAnotherModelIsRejectedOnAllRanksWithTheDifferences) {
  const TestFolder folder;
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const auto optimizer = plain_momentum(model, 0.1);
    ASSERT_TRUE(save(session, folder.path(), *model, *optimizer, {}));
    Model other(7);
    const std::vector<Tensor> before = values(other);
    const auto other_optimizer = amsgrad(other, 0.1);
    const auto found = resume(session, folder.path(), *other, *other_optimizer);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kMismatch);
    EXPECT_EQ(
        found.error().message,
        folder.path() +
            "/checkpoint belongs to another training: it has 'optimizer SGD with 7 "
            "parameters' where this training has 'optimizer Adam with 7 parameters', "
            "'last.weight: float64 [3, 5]' where this training has 'last.weight: float64 [7, 5]', "
            "'last.bias: float64 [3]' where this training has 'last.bias: float64 [7]'");
    EXPECT_TRUE(equal(values(other), before));
  });
}

TEST(Checkpoint, ThatIsDamagedIsRejectedOnAllRanks) {
  const TestFolder folder;
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const auto optimizer = plain_momentum(model, 0.1);
    ASSERT_TRUE(save(session, folder.path(), *model, *optimizer, {}));
    if (session.rank() == 0) {
      std::fstream file(checkpoint_path(folder.path()), std::ios::in | std::ios::out);
      file.seekp(200);
      file.put('!');
    }
    const auto found = resume(session, folder.path(), *model, *optimizer);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().message,
              folder.path() + "/checkpoint is damaged: its checksum does not match");
    EXPECT_EQ(found.error().advice, "move it away to start from the beginning");
  });
}

TEST(Checkpoint, WithErrorsIsInAFolderOfItsOwnerOnly) {
  const TestFolder folder;
  const std::string made = folder.path() + "/runs/made/";
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const auto inner = plain_momentum(model, 0.1);
    const auto optimizer = DistributedOptimizer::over(session, *model, *inner);
    ASSERT_TRUE(optimizer) << optimizer.error().to_string();
    const Status kept = save(session, made, *model, *inner, **optimizer, {});
    ASSERT_TRUE(kept) << kept.error().to_string();
  });
  EXPECT_EQ(std::filesystem::status(made).permissions(), std::filesystem::perms::owner_all);
}

TEST(Checkpoint, RemovesNoFilesButErrorsOfOlderCheckpoints) {
  const TestFolder folder;
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  std::ofstream(path("errors-2026-11-30.log")) << "x";
  std::ofstream(path("errors-1-2-3-4")) << "x";
  std::filesystem::create_directories(path("errors-7-7-7-7/notes"));
  std::filesystem::create_directory(path("errors-of-model"));
  spawn_sessions(2, [&](Session& session) {
    Model model;
    const auto inner = plain_momentum(model, 0.1);
    const auto optimizer = DistributedOptimizer::over(session, *model, *inner);
    ASSERT_TRUE(optimizer) << optimizer.error().to_string();
    for (const std::uint64_t step : {1, 2}) {
      const Status kept = save(session, folder.path(), *model, *inner, **optimizer, {.step = step});
      ASSERT_TRUE(kept) << kept.error().to_string();
    }
  });
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    found.insert(entry.path().filename());
  }
  EXPECT_EQ(found, (std::set<std::string>{"checkpoint", "errors-0-2-0-0", "errors-0-2-0-1",
                                          "errors-1-2-3-4", "errors-2026-11-30.log",
                                          "errors-7-7-7-7", "errors-of-model"}));
}

TEST(Checkpoint, ThatCannotBeWrittenIsAnErrorOnAllRanks) {
  spawn_sessions(2, [](Session& session) {
    Model model;
    const auto optimizer = plain_momentum(model, 0.1);
    const Status kept = save(session, "/proc/nowhere", *model, *optimizer, {});
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().code, ErrorCode::kSystem);
    EXPECT_EQ(kept.error().message, "cannot make /proc/nowhere: No such file or directory");
  });
}

}  // namespace
}  // namespace muster::training
