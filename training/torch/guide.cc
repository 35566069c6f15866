// The code of docs/training-cpp.md, compiled. guide_test.py checks that every block there occurs in
// this file.
#include <muster/collective/bootstrap.h>
#include <muster/collective/communicator.h>
#include <muster/collective/session.h>
#include <muster/training/broadcast.h>
#include <muster/training/checkpoint.h>
#include <muster/training/distributed_optimizer.h>
#include <muster/training/distributed_sampler.h>
#include <muster/training/sharded_optimizer.h>
#include <muster/training/sync_batch_norm.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

using namespace muster::collective;
using namespace muster::training;

namespace {

int report(const Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

// A parabola, as an example.
struct Batch {
  torch::Tensor x, y;
};

Batch load(const std::vector<std::uint64_t>& samples) {
  const std::vector<float> places(samples.begin(), samples.end());
  const torch::Tensor x = torch::tensor(places).unsqueeze(1) / 1000 - 0.5;
  return {x, x * x};
}

torch::nn::Sequential make_model() {
  return torch::nn::Sequential(torch::nn::Linear(1, 16), torch::nn::Tanh(),
                               torch::nn::Linear(16, 1));
}

Result<Session> start_session() {
  Result<Options> options = bootstrap_from_environment();
  if (!options) return options.error();
  Result<Communicator> world = Communicator::connect(*options);
  if (!world) return world.error();
  return Session::start(*std::move(world));
}

int train(Session& session) {
  torch::nn::Sequential model = make_model();
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  if (Status sent = broadcast_parameters(session, *model); !sent) return report(sent.error());

  auto optimizer = DistributedOptimizer::over(session, *model, sgd);
  if (!optimizer) return report(optimizer.error());
  auto sampler = DistributedSampler::create(
      {.samples = 1000, .rank = session.rank(), .size = session.size(), .seed = 1});
  if (!sampler) return report(sampler.error());

  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    sampler->set_epoch(epoch);
    for (auto samples = sampler->next(8); !samples.empty(); samples = sampler->next(8)) {
      const Batch batch = load(samples);
      (*optimizer)->zero_grad();
      torch::mse_loss(model->forward(batch.x), batch.y).backward();
      if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
    }
  }
  return 0;
}

int accumulate(Session& session) {
  torch::nn::Sequential model = make_model();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  constexpr int kPasses = 4;
  auto optimizer = DistributedOptimizer::over(session, *model, sgd, {.passes_per_step = kPasses});
  if (!optimizer) return report(optimizer.error());
  (*optimizer)->zero_grad();
  for (int pass = 0; pass < kPasses; ++pass) {
    const Batch batch = load({0, 1, 2, 3});
    (torch::mse_loss(model->forward(batch.x), batch.y) / kPasses).backward();
  }
  if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
  return 0;
}

int clip(Session& session) {
  torch::nn::Sequential model = make_model();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  auto optimizer =
      DistributedOptimizer::over(session, *model, sgd, {.compression = Compression::kBFloat16});
  if (!optimizer) return report(optimizer.error());
  const Batch batch = load({0, 1, 2, 3});
  torch::mse_loss(model->forward(batch.x), batch.y).backward();
  if (Status reduced = (*optimizer)->synchronize(); !reduced) return report(reduced.error());
  torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
  if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
  return 0;
}

int keep(Session& session, const std::string& folder) {
  torch::nn::Sequential model = make_model();
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.001));
  auto sampler =
      DistributedSampler::create({.samples = 1000, .rank = session.rank(), .size = session.size()});
  if (!sampler) return report(sampler.error());

  Progress progress;
  const auto found = resume(session, folder, *model, adam);
  if (!found) return report(found.error());
  if (found->has_value()) {
    progress = **found;
    sampler->set_epoch(progress.epoch);
    sampler->seek(progress.samples / static_cast<std::uint64_t>(session.size()));
  } else if (Status sent = broadcast_parameters(session, *model); !sent) {
    return report(sent.error());
  }

  if (Status kept = save(session, folder, *model, adam, progress); !kept)
    return report(kept.error());
  return 0;
}

int divide(Session& session, const std::string& folder) {
  torch::nn::Sequential model = make_model();
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.001));
  auto optimizer = ShardedOptimizer::over(session, *model, adam);
  if (!optimizer) return report(optimizer.error());
  const auto found = (*optimizer)->resume(folder);
  if (!found) return report(found.error());
  const Batch batch = load({0, 1, 2, 3});
  torch::mse_loss(model->forward(batch.x), batch.y).backward();
  if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
  if (Status kept = (*optimizer)->save(folder, {.step = 1}); !kept) return report(kept.error());
  return 0;
}

torch::Tensor normalise(Session& session, const torch::Tensor& images) {
  SyncBatchNorm norm(session, "layer1.norm", SyncBatchNormOptions{.features = 64});
  return norm->forward(images);
}

}  // namespace

int main(int argc, char** argv) {
  auto session = start_session();
  if (!session) return report(session.error());
  normalise(*session, torch::randn({8, 64, 4, 4}));
  const int failed = train(*session) + accumulate(*session) + clip(*session);
  if (argc < 2 || failed != 0) return failed;
  const std::string folder = argv[1];
  return keep(*session, folder) + divide(*session, folder + "/divided");
}
