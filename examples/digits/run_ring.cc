#include <cstdio>

#include "idx.h"
#include "muster/collective/communicator.h"
#include "ring_trainer.h"
#include "run.h"
#include "shard.h"

namespace muster::digits {
namespace {

using collective::Communicator;
using collective::Result;

void print_rank(const Communicator& world, const Dataset& data) {
  const Shard shard(data.train.size(), world.rank(), world.size(), 1);
  std::printf("rank %d of %d on %s: %zu training images\n", world.rank(), world.size(),
              world.host().c_str(), shard.size());
  std::fflush(stdout);
}

void print_summary(const Communicator& world, const Options& options) {
  const auto epochs = static_cast<std::uint64_t>(options.settings.epochs);
  std::printf("world of %d, batches of %zu on each rank, %s\n", world.size(),
              options.settings.batch, count_of(epochs, "epoch").c_str());
  std::fflush(stdout);
}

int train_as_rank(Communicator& world, const Options& options) {
  const std::string self = "rank " + std::to_string(world.rank()) + ": ";
  const Result<Dataset, std::string> data = load_dataset(options.data);
  if (!data) return complain(self + data.error());
  const bool speaks = world.rank() == 0;
  if (options.output == Output::kText) print_rank(world, *data);
  if (speaks) print_data(*data, options);
  if (speaks && options.output == Output::kText) print_summary(world, options);

  Progress progress(options.settings.epochs, options.output);
  Observer observer;
  if (speaks) {
    observer.on_step = [&](int epoch, std::size_t step, std::size_t steps) {
      progress.show_step(epoch, step, steps);
    };
    observer.on_epoch = [&](const EpochReport& epoch) {
      progress.show_epoch(epoch);
      report_epoch(epoch, options);
    };
  }
  const Result<Outcome> outcome = train_in_ring(world, *data, options.settings, observer);
  if (!outcome) return complain(outcome.error().to_string());
  if (!speaks) return 0;
  const std::string holders =
      world.size() == 1 ? "" : "on all " + std::to_string(world.size()) + " ranks";
  return finish(*outcome, holders, progress, options);
}

}  // namespace

int run_ring(const Options& options) {
  const auto place = collective::bootstrap_from_environment();
  if (!place) return complain(place.error().to_string());
  // Connects before it reads the data: if this rank cannot read it, the rank leaves, and the other
  // ranks detect that at once instead of waiting for it.
  Result<Communicator> world = Communicator::connect(*place);
  if (!world) return complain(world.error().to_string());
  return train_as_rank(*world, options);
}

}  // namespace muster::digits
