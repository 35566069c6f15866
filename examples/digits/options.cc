#include "options.h"

#include <array>
#include <charconv>
#include <functional>
#include <sstream>

namespace muster::digits {
namespace {

// Takes the text of a value; false where it is not one.
using Reader = std::function<bool(std::string_view)>;

struct Flag {
  std::string_view name;
  std::string_view expected;  // as in "--epochs is 'x', not a whole number from 1"
  Reader read;
};

template <typename T>
Reader number(T& target, T least, T most) {
  return [&target, least, most](std::string_view text) {
    T value{};
    const char* const end = text.data() + text.size();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` says where it ends
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    // The comparison is the way round that is false for NaN.
    if (error != std::errc{} || stopped != end || !(value >= least && value <= most)) return false;
    target = value;
    return true;
  };
}

Reader text(std::string& target) {
  return [&target](std::string_view value) {
    target = value;
    return !value.empty();
  };
}

std::array<Flag, 7> flags_of(Options& options) {
  Settings& settings = options.settings;
  return {{
      {"--data", "a folder", text(options.data)},
      {"--epochs", "a whole number from 1", number(settings.epochs, 1, 1'000'000'000)},
      {"--batch", "a whole number from 1 to 1000000",
       number(settings.batch, std::size_t{1}, std::size_t{1'000'000})},
      {"--learning-rate", "a number above 0, up to 100",
       number(settings.learning_rate, 1e-12, 100.0)},
      {"--hidden", "a whole number from 1 to 65536", number(settings.hidden, 1, 65'536)},
      {"--seed", "a whole number from 0",
       number(settings.seed, std::uint64_t{0}, ~std::uint64_t{0})},
      {"--save", "a file", text(options.save)},
  }};
}

const Flag* find(const std::array<Flag, 7>& flags, std::string_view name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

}  // namespace

collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments, Options defaults) {
  Options options = std::move(defaults);
  const std::array<Flag, 7> flags = flags_of(options);
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const Flag* const flag = find(flags, argument.substr(0, equals));
    if (flag == nullptr) {
      faults.push_back("there is no " + std::string(argument));
      continue;
    }
    const bool attached = equals != std::string_view::npos;
    if (!attached && i + 1 == arguments.size()) {
      faults.push_back(std::string(flag->name) + " needs a value");
      continue;
    }
    const std::string_view value = attached ? argument.substr(equals + 1) : arguments[++i];
    if (!flag->read(value)) {
      faults.push_back(std::string(flag->name) + " is '" + std::string(value) + "', not " +
                       std::string(flag->expected));
    }
  }
  if (!faults.empty()) return faults;
  return options;
}

std::string help(const Options& defaults) {
  const Settings& settings = defaults.settings;
  std::ostringstream text;
  text << "Trains a small network on handwritten digits, data-parallel over the ranks of a job.\n"
          "\n"
          "  digits                     on one process\n"
          "  mpirun -np 2 digits        on two of this host\n"
          "\n"
          "  --data DIR           folder with the four IDX files, as of MNIST (default: the 8 x 8\n"
          "                       digits that come with the source)\n"
       << "  --epochs N           passes over the training images (" << settings.epochs << ")\n"
       << "  --batch N            images of a step on each rank (" << settings.batch << ")\n"
       << "  --learning-rate X    (" << settings.learning_rate << ")\n"
       << "  --hidden N           units of each of the two hidden layers (" << settings.hidden
       << ")\n"
       << "  --seed N             of the first weights and of the order of the images ("
       << settings.seed << ")\n"
       << "  --save FILE          write the weights there: float32, little-endian, for each layer\n"
          "                       its weights, a row for each input, then its biases\n"
          "\n"
          "How ranks on several hosts find each other: MUSTER_RENDEZVOUS, MUSTER_RENDEZVOUS_KEY,\n"
          "MUSTER_RANK, MUSTER_WORLD_SIZE (see collective/README.md).\n";
  return text.str();
}

}  // namespace muster::digits
