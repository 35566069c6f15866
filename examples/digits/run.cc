#include "run.h"

#include <muster_report.h>

#include <cstdio>
#include <fstream>

namespace muster::digits {
namespace {

bool save(const std::string& path, const std::vector<float>& weights) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size() * sizeof(float)));
  file.close();
  return file.good();
}

}  // namespace

int run_program(std::span<const std::string_view> arguments,
                const std::function<int(const Options&)>& ring,
                const std::function<int(const Options&)>& with_servers) {
  const Options defaults{.data = DIGITS_DATA};
  const auto options = parse(arguments, defaults);
  if (!options) {
    for (const std::string& fault : options.error()) complain(fault);
    return complain("see digits --help", 2);
  }
  if (options->help) {
    std::fputs(help(defaults).c_str(), stdout);
    return 0;
  }
  return options->strategy == Strategy::kRing ? ring(*options) : with_servers(*options);
}

int complain(const std::string& fault, int code) {
  std::fprintf(stderr, "digits: %s\n", fault.c_str());
  return code;
}

void report_epoch(const EpochReport& epoch, const Options& options) {
  const int epochs = options.settings.epochs;
  if (!epoch.loss || !epoch.images_per_second) {
    muster::report({{"epoch", epoch.epoch}, {"epochs", epochs}, {"accuracy", epoch.test_accuracy}});
    return;
  }
  muster::report({{"epoch", epoch.epoch},
                  {"epochs", epochs},
                  {"loss", *epoch.loss},
                  {"accuracy", epoch.test_accuracy},
                  {"images_per_second", *epoch.images_per_second}});
}

void print_data(const Dataset& data, const Options& options) {
  if (options.output == Output::kJson) return;
  std::printf("%s: %zu training and %zu test images of %d x %d pixels\n", options.data.c_str(),
              data.train.size(), data.test.size(), data.train.rows, data.train.columns);
  std::fflush(stdout);
}

int finish(const Outcome& outcome, std::string_view holders, Progress& progress,
           const Options& options) {
  progress.show_outcome(outcome, holders);
  if (!options.save.empty() && !save(options.save, outcome.weights)) {
    return complain("cannot write the weights to " + options.save);
  }
  return 0;
}

}  // namespace muster::digits
