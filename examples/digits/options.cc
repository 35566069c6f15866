#include "options.h"

#include <flags.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

namespace muster::digits {
namespace {

using parameter_server::Adam;
using parameter_server::Optimizer;
using parameter_server::Sgd;

using examples::Flag;
using examples::number;
using examples::Reader;
using examples::Switch;
using examples::text;
using examples::word;

// A number from 0 to `most`, or `none` for nullopt.
template <typename T>
Reader count_or_none(std::optional<T>& target, T most) {
  return [&target, most](std::string_view text) {
    if (text != "none") return number(target, T{0}, most)(text);
    target.reset();
    return true;
  };
}

// A whole number of seconds.
Reader seconds(std::chrono::seconds& target, int least, int most) {
  return [&target, least, most](std::string_view text) {
    int value = 0;
    if (!number(value, least, most)(text)) return false;
    target = std::chrono::seconds(value);
    return true;
  };
}

constexpr std::pair<std::string_view, Strategy> kStrategies[] = {
    {"ring", Strategy::kRing}, {"parameter-server", Strategy::kParameterServer}};

constexpr std::pair<std::string_view, Output> kOutputs[] = {{"text", Output::kText},
                                                            {"json", Output::kJson}};

constexpr std::pair<std::string_view, Optimizer> kOptimizers[] = {
    {"sgd", Sgd{}},
    {"momentum", Sgd{.momentum = kMomentum}},
    {"nesterov", Sgd{.momentum = kMomentum, .nesterov = true}},
    {"adam", Adam{}}};

// Values that other flags have to complete.
struct Raw {
  std::optional<double> learning_rate;
  Optimizer optimizer = Sgd{.momentum = kMomentum};
};

using Flags = std::array<Flag, 13>;

Flags flags_of(Options& options, Raw& raw) {
  Settings& settings = options.settings;
  ServerSettings& servers = options.servers;
  return {{
      {"--strategy", "ring or parameter-server", word(options.strategy, kStrategies)},
      {"--data", "a folder", text(options.data)},
      {"--epochs", "a whole number from 1", number(settings.epochs, 1, 1'000'000'000)},
      {"--batch", "a whole number from 1 to 1000000",
       number(settings.batch, std::size_t{1}, std::size_t{1'000'000})},
      {"--learning-rate", "a number above 0, up to 100", number(raw.learning_rate, 1e-12, 100.0)},
      {"--hidden", "a whole number from 1 to 65536", number(settings.hidden, 1, 65'536)},
      {"--seed", "a whole number from 0",
       number(settings.seed, std::uint64_t{0}, ~std::uint64_t{0})},
      {"--optimizer", "sgd, momentum, nesterov or adam", word(raw.optimizer, kOptimizers)},
      {"--staleness", "a whole number from 0 to 1000000, or none",
       count_or_none(servers.staleness, std::uint64_t{1'000'000})},
      {"--start-with", "a whole number from 1 to 1000000",
       number(servers.start_with, 1, 1'000'000)},
      {"--silence", "a whole number from 1 to 86400", seconds(servers.silence, 1, 86'400)},
      {"--save", "a file", text(options.save)},
      {"--output", "text or json", word(options.output, kOutputs)},
  }};
}

constexpr std::string_view kOnlyWithServers[] = {"--optimizer", "--staleness", "--start-with",
                                                 "--silence"};

// Rejects the flags of the parameter server under another strategy.
void check_strategy(const std::vector<std::string_view>& used, const Options& options,
                    std::vector<std::string>& faults) {
  if (options.strategy == Strategy::kParameterServer) return;
  for (const std::string_view name : used) {
    if (std::ranges::find(kOnlyWithServers, name) == std::end(kOnlyWithServers)) continue;
    faults.push_back(std::string(name) + " requires --strategy parameter-server");
  }
}

// Sets the given learning rate, or the optimizer's default.
void settle(const Raw& raw, Options& options) {
  options.servers.optimizer = raw.optimizer;
  const Adam* const adam = std::get_if<Adam>(&raw.optimizer);
  if (adam != nullptr) options.settings.learning_rate = adam->learning_rate;
  if (raw.learning_rate) options.settings.learning_rate = *raw.learning_rate;
  std::visit([&](auto& optimizer) { optimizer.learning_rate = options.settings.learning_rate; },
             options.servers.optimizer);
}

}  // namespace

collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments, Options defaults) {
  Options options = std::move(defaults);
  Raw raw;
  const Flags flags = flags_of(options, raw);
  const Switch switches[] = {{"--help", options.help}, {"-h", options.help}};
  std::vector<std::string> faults;
  const std::vector<std::string_view> used = read_flags(arguments, flags, switches, faults);
  check_strategy(used, options, faults);
  if (!faults.empty()) return faults;
  settle(raw, options);
  return options;
}

std::string help(const Options& defaults) {
  const Settings& settings = defaults.settings;
  std::ostringstream text;
  text
      << "Trains a small network on handwritten digits, data-parallel over the processes of a "
         "job.\n"
         "\n"
         "  digits                     on one process\n"
         "  mpirun -np 2 digits        on two processes of this host\n"
         "  muster submit grpc NAME --workers 2 --parameter-servers 1 --\n"
         "    digits --strategy parameter-server\n"
         "\n"
         "  --strategy NAME      how gradients are combined. ring: an all-reduce averages them,\n"
         "                       and all processes take the same steps (default);\n"
         "                       parameter-server: each worker pushes its gradients to servers,\n"
         "                       which take a step with each of them\n"
         "  --data DIR           folder with the four IDX files, named as in MNIST (default: the\n"
         "                       8 x 8 digits of the source tree)\n"
      << "  --epochs N           passes over the training images (" << settings.epochs << ")\n"
      << "  --batch N            images per step on each process (" << settings.batch << ")\n"
      << "  --learning-rate X    (" << settings.learning_rate << "; with adam "
      << Adam{}.learning_rate << ")\n"
      << "  --hidden N           units of each of the two hidden layers (" << settings.hidden
      << ")\n"
      << "  --seed N             seed of the initial weights and of the order of the images ("
      << settings.seed << ")\n"
      << "  --save FILE          write the weights to a file: float32, little-endian, for each\n"
         "                       layer its weights, one row for each input, then its biases\n"
         "  --output FORM        text, or json: one object per line for each epoch (epoch,\n"
         "                       seconds, images, images_per_second, loss, train_accuracy,\n"
         "                       test_accuracy)\n"
         "                       and one at the end (test_accuracy, images_per_second,\n"
         "                       weights_checksum)\n"
         "\n"
         "With --strategy parameter-server:\n"
         "  --optimizer NAME     on the servers: sgd, momentum (0.9, the default), nesterov, adam\n"
         "  --staleness N        a worker waits while it is more than N steps ahead of the\n"
         "                       slowest worker; none: workers never wait (default)\n"
         "  --start-with N       workers that must join before training begins; other workers\n"
         "                       may join later (default: all)\n"
         "  --silence N          seconds without an answer after which the machine of a worker or\n"
         "                       of a server counts as lost (10)\n"
         "Each task runs the same command. TF_CONFIG, which a job of kind grpc sets, determines\n"
         "which tasks serve and which train.\n"
         "\n"
         "Ranks on several hosts find each other by MUSTER_RENDEZVOUS, MUSTER_RENDEZVOUS_KEY,\n"
         "MUSTER_RANK and MUSTER_WORLD_SIZE (see collective/README.md).\n";
  return text.str();
}

}  // namespace muster::digits
