// resnet20: trains ResNet-20 over all processes of a job and prints images/sec.
//
// Exit codes: 0 training succeeded; 1 it failed, with the reason on standard error; 2 bad usage.
#include <cstdio>
#include <string>
#include <vector>

#include "images.h"
#include "muster/collective/bootstrap.h"
#include "muster/collective/communicator.h"
#include "muster/collective/session.h"
#include "options.h"
#include "train.h"

namespace muster::resnet20 {
namespace {

using collective::Communicator;
using collective::Result;
using collective::Session;

constexpr std::size_t kMadeTrainingImages = 10'000;
constexpr std::size_t kMadeTestImages = 1'000;

int complain(const std::string& sentence, int code = 1) {
  std::fprintf(stderr, "resnet20: %s\n", sentence.c_str());
  return code;
}

Result<Session> start_session() {
  const auto place = collective::bootstrap_from_environment();
  if (!place) return place.error();
  Result<Communicator> world = Communicator::connect(*place);
  if (!world) return world.error();
  const auto settings = collective::session_options_from_environment();
  if (!settings) return settings.error();
  return Session::start(*std::move(world), *settings);
}

Result<Dataset, std::vector<std::string>> load(const Options& options) {
  if (!options.data.empty()) return load_cifar(options.data);
  return synthetic_images(kMadeTrainingImages, kMadeTestImages, options.seed);
}

int run(std::span<const std::string_view> arguments) {
  const auto options = parse(arguments);
  if (!options) {
    for (const std::string& fault : options.error()) complain(fault);
    return complain("see resnet20 --help", 2);
  }
  if (options->help) {
    std::fputs(help().c_str(), stdout);
    return 0;
  }
  // Connects before it reads the data: if this rank cannot read it, the rank leaves, and the other
  // ranks detect that at once instead of waiting for it.
  auto session = start_session();
  if (!session) return complain(session.error().to_string());
  const auto data = load(*options);
  if (!data) {
    for (const std::string& fault : data.error()) complain(fault);
    return 1;
  }
  return train(*session, *data, *options);
}

}  // namespace
}  // namespace muster::resnet20

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return muster::resnet20::run(arguments);
}
