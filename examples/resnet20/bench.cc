// resnet20_bench: measures how much time communication adds to a step of ResNet-20.
//
//   mpirun -np 2 resnet20_bench [batch size] [rounds]
//
// Each rank trains two copies of the model, turn by turn on the same batches: one alone, one
// together with the other ranks. Other load on the machine therefore affects both alike. All ranks
// begin a turn together. Rank 0 prints one object per line.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "images.h"
#include "muster/collective/communicator.h"
#include "muster/collective/session.h"
#include "muster/training/broadcast.h"
#include "muster/training/distributed_optimizer.h"
#include "resnet.h"

namespace muster::resnet20 {
namespace {

using collective::Communicator;
using collective::Result;
using collective::Session;
using collective::Status;
using training::DistributedOptimizer;
using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 5;
// The steps of a turn. A rank that is ahead at the end of a turn waits for the next turn, not
// within a step.
constexpr int kStepsOfATurn = 5;

int complain(const std::string& sentence) {
  std::fprintf(stderr, "resnet20_bench: %s\n", sentence.c_str());
  return 1;
}

struct Copy {
  ResNet20 model{};
  torch::optim::SGD inner{model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)};
  std::unique_ptr<DistributedOptimizer> distributed = {};
  std::vector<double> milliseconds = {};  // per step, for each turn

  Status step(const torch::Tensor& images, const torch::Tensor& labels) {
    if (distributed) {
      distributed->zero_grad();
    } else {
      for (torch::Tensor& parameter : model->parameters()) parameter.mutable_grad().reset();
    }
    torch::nn::functional::cross_entropy(model(images), labels).backward();
    if (distributed) return distributed->step();
    inner.step();
    return {};
  }
};

double part(std::vector<double> values, double of) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(static_cast<double>(values.size() - 1) * of)];
}

Status meet(Session& session) {
  const auto ticket = session.barrier("bench.turn");
  return ticket ? session.wait(*ticket) : Status(ticket.error());
}

Status turn(Session& session, Copy& copy, const torch::Tensor& images,
            const torch::Tensor& labels) {
  if (Status met = meet(session); !met) return met;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kStepsOfATurn; ++i) {
    if (Status stepped = copy.step(images, labels); !stepped) return stepped;
  }
  copy.milliseconds.push_back(
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / kStepsOfATurn);
  return {};
}

Status measure(Session& session, std::int64_t batch, int rounds) {
  Copy alone, together;
  if (Status sent = training::broadcast_parameters(session, *together.model); !sent) return sent;
  auto distributed = DistributedOptimizer::over(session, *together.model, together.inner);
  if (!distributed) return distributed.error();
  together.distributed = *std::move(distributed);
  const torch::Tensor images = torch::randn({batch, kChannels, kSide, kSide});
  const torch::Tensor labels = torch::randint(kClasses, {batch}, torch::kInt64);
  for (int round = 0; round < kWarmUp + rounds; ++round) {
    for (Copy* const copy : {&alone, &together}) {
      if (Status done = turn(session, *copy, images, labels); !done) return done;
      if (round < kWarmUp) copy->milliseconds.clear();
    }
  }
  if (session.rank() != 0) return {};
  std::vector<double> added;
  for (std::size_t i = 0; i < alone.milliseconds.size(); ++i) {
    added.push_back(100 * (together.milliseconds[i] / alone.milliseconds[i] - 1));
  }
  const auto quarters = [](const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [%.3f, %.3f, %.3f]", name, part(values, 0.25), part(values, 0.5),
                part(values, 0.75));
  };
  std::printf("{\"ranks\": %d, \"batch_size\": %d, \"turns\": %zu, ", session.size(),
              static_cast<int>(batch), added.size());
  quarters("alone_ms", alone.milliseconds);
  std::printf(", ");
  quarters("together_ms", together.milliseconds);
  std::printf(", ");
  quarters("added_percent", added);
  std::printf("}\n");
  return {};
}

int run(int argc, char** argv) {
  const int batch = argc > 1 ? std::atoi(argv[1]) : 8;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  if (batch < 1 || rounds < 1) return complain("batch size and rounds must be 1 or more");
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const auto place = collective::bootstrap_from_environment();
  if (!place) return complain(place.error().to_string());
  Result<Communicator> world = Communicator::connect(*place);
  if (!world) return complain(world.error().to_string());
  auto session = Session::start(*std::move(world));
  if (!session) return complain(session.error().to_string());
  const Status measured = measure(*session, batch, rounds);
  return measured ? 0 : complain(measured.error().to_string());
}

}  // namespace
}  // namespace muster::resnet20

int main(int argc, char** argv) {
  return muster::resnet20::run(argc, argv);
}
