// digits: trains a small network on handwritten digits over all ranks of a job.
//
// Exit codes: 0 trained, and all ranks hold the same weights; 1 something failed, a sentence on
// standard error says what; 2 bad usage.
#include <muster_report.h>

#include <cstdio>
#include <fstream>

#include "idx.h"
#include "muster/collective/communicator.h"
#include "options.h"
#include "progress.h"
#include "shard.h"

namespace muster::digits {
namespace {

using collective::Communicator;
using collective::Result;

int report(const std::string& fault, int code = 1) {
  std::fprintf(stderr, "digits: %s\n", fault.c_str());
  return code;
}

void print_place(const Communicator& world, const Dataset& data) {
  const Shard shard(data.train.size(), world.rank(), world.size(), 1);
  std::printf("rank %d of %d on %s: %zu training images\n", world.rank(), world.size(),
              world.host().c_str(), shard.size());
  std::fflush(stdout);
}

void print_summary(const Communicator& world, const Dataset& data, const Options& options) {
  std::printf("%s: %zu training and %zu test images of %d x %d pixels\n", options.data.c_str(),
              data.train.size(), data.test.size(), data.train.rows, data.train.columns);
  std::printf("world of %d, batches of %zu on each rank, %d epochs\n", world.size(),
              options.settings.batch, options.settings.epochs);
  std::fflush(stdout);
}

void report_epoch(const EpochReport& epoch, const Options& options) {
  muster::report({{"epoch", epoch.epoch},
                  {"epochs", options.settings.epochs},
                  {"loss", epoch.loss},
                  {"accuracy", epoch.test_accuracy},
                  {"images_per_second", epoch.images_per_second}});
}

void print_outcome(const Communicator& world, const Outcome& outcome) {
  std::printf("test accuracy: %.2f %%\n", 100 * outcome.test_accuracy);
  std::printf("images/s: %.0f\n", outcome.images_per_second);
  std::printf("weights checksum: 0x%016llx on all %d ranks\n",
              static_cast<unsigned long long>(outcome.checksum), world.size());
}

bool save(const std::string& path, const std::vector<float>& weights) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size() * sizeof(float)));
  file.close();
  return file.good();
}

int train_on(Communicator& world, const Options& options) {
  const std::string self = "rank " + std::to_string(world.rank()) + ": ";
  const Result<Dataset, std::string> data = load_dataset(options.data);
  if (!data) return report(self + data.error());
  print_place(world, *data);
  const bool speaks = world.rank() == 0;
  if (speaks) print_summary(world, *data, options);

  Progress progress(options.settings.epochs);
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
  const Result<Outcome> outcome = train(world, *data, options.settings, observer);
  if (!outcome) return report(outcome.error().to_string());
  if (speaks) print_outcome(world, *outcome);
  if (speaks && !options.save.empty() && !save(options.save, outcome->weights)) {
    return report("cannot write the weights to " + options.save);
  }
  return 0;
}

int run(std::span<const std::string_view> arguments) {
  const Options defaults{.data = DIGITS_DATA};
  const auto options = parse(arguments, defaults);
  if (!options) {
    for (const std::string& fault : options.error()) report(fault);
    return report("see digits --help", 2);
  }
  if (options->help) {
    std::fputs(help(defaults).c_str(), stdout);
    return 0;
  }
  const auto place = collective::bootstrap_from_environment();
  if (!place) return report(place.error().to_string());
  // Before the data is read: a rank that cannot read it then leaves, and the others learn of it at
  // once instead of waiting for it to come.
  Result<Communicator> world = Communicator::connect(*place);
  if (!world) return report(world.error().to_string());
  return train_on(*world, *options);
}

}  // namespace
}  // namespace muster::digits

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return muster::digits::run(arguments);
}
